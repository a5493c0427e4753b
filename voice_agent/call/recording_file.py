"""The files of one recording: the audio, and its loudness for whoever draws it.

``<call>.wav`` or ``<call>.opus``   stereo, 16 kHz: caller left, agent as heard right
``<call>.peaks``                    two bytes (left, right) for each 50 ms: the largest sample, 0 to 255

Both are readable by their owner only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.audio.ogg_opus import OpusWriter
from voice_agent.audio.wav import WavWriter

Format = Literal["wav", "opus"]
PEAKS_PER_SECOND = 20
_PEAK_SAMPLES = SAMPLE_RATE // PEAKS_PER_SECOND
CHANNELS = 2


class _Writer(Protocol):
    def write(self, pcm: bytes) -> None: ...

    def close(self) -> None: ...


class RecordingFile:
    """Writes one recording. Blocking; used by one thread at a time.

    Raises:
        OSError: The directory cannot be used.
    """

    def __init__(self, path: Path, format: Format) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        peaks = path.with_suffix(".peaks")
        for file in (path, peaks):
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
        self._audio: _Writer = (OpusWriter if format == "opus" else WavWriter)(path, SAMPLE_RATE, CHANNELS)
        # Unbuffered: forty bytes a second, there when the process is killed.
        self._peaks = peaks.open("wb", buffering=0)
        self._odd = np.zeros((0, CHANNELS), "<i2")

    def write(self, pcm: bytes) -> None:
        """Append interleaved int16 PCM.

        Raises:
            OSError: The disk is full.
        """
        self._audio.write(pcm)
        samples = np.concatenate([self._odd, np.frombuffer(pcm, "<i2").reshape(-1, CHANNELS)])
        whole = len(samples) // _PEAK_SAMPLES * _PEAK_SAMPLES
        self._odd = samples[whole:]
        self._peaks.write(peaks_of(samples[:whole]))

    def close(self) -> None:
        """Make the files whole. Idempotent.

        Raises:
            OSError: The rest could not be written; the files are closed all the same.
        """
        try:
            if len(self._odd):
                rest = np.zeros((_PEAK_SAMPLES, CHANNELS), "<i2")
                rest[: len(self._odd)] = self._odd
                self._odd = self._odd[:0]
                self._peaks.write(peaks_of(rest))
        finally:
            self._peaks.close()
            self._audio.close()


def peaks_of(samples: np.ndarray[tuple[int, int], np.dtype[np.int16]]) -> bytes:
    """Return the largest absolute sample of each 50 ms and channel, as one byte each.

    Args:
        samples: int16 of shape (n, 2), n a multiple of 800.
    """
    blocks = np.abs(samples.astype(np.int32)).reshape(-1, _PEAK_SAMPLES, CHANNELS)
    return bytes(np.minimum(blocks.max(axis=1, initial=0) >> 7, 255).astype(np.uint8))
