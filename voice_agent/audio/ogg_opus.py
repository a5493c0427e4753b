"""Ogg Opus files of calls: about an eighth of the size of WAV, readable to the last second if the process dies.

Encoding is done by libopus through PyAV, which is imported when the first file is opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

BITRATE_BPS = 24_000
"""Per channel: speech at 16 kHz is transparent from about 20 kbit/s on (RFC 7587, section 3.1.1)."""
COMPLEXITY = "5"
"""Of libopus, 0 to 10: 4.4 ms of CPU a second of stereo speech, where 10 takes 5.8 for files of the same size."""
PAGE_US = 1_000_000
"""Length of an Ogg page. What is not on a page yet is lost with the process."""


class OpusWriter:
    """Writes interleaved int16 PCM as one Opus stream. Used by one thread at a time.

    Args:
        path: Made or written over.
        rate: 8000, 12000, 16000, 24000 or 48000 Hz.
        channels: 1 or 2.

    Raises:
        OSError: The file cannot be made.
        ImportError: PyAV is not installed.
    """

    def __init__(self, path: Path, rate: int, channels: int) -> None:
        import av

        self._av = av
        # libav reports an unusable path only with the first packet.
        path.open("wb").close()
        self._rate, self._channels = rate, channels
        self._layout = "mono" if channels == 1 else "stereo"
        self._samples = 0
        self._closed = False
        options = {"page_duration": str(PAGE_US), "flush_packets": "1"}
        try:
            self._container: Any = av.open(str(path), "w", format="ogg", options=options)
            self._stream: Any = self._container.add_stream(
                "libopus", rate=rate, layout=self._layout, options={"compression_level": COMPLEXITY}
            )
            self._stream.bit_rate = BITRATE_BPS * channels
        except av.FFmpegError as fault:
            raise OSError(fault.errno, fault.strerror) from fault

    def write(self, pcm: bytes) -> None:
        """Append interleaved int16 PCM: whole sample frames.

        Raises:
            ValueError: Part of a sample frame, or the writer is closed.
            OSError: The disk is full.
        """
        if self._closed or len(pcm) % (2 * self._channels):
            raise ValueError("a closed writer, or no whole number of sample frames")
        if not pcm:
            return
        frame = self._av.AudioFrame.from_ndarray(
            np.frombuffer(pcm, "<i2").reshape(1, -1), format="s16", layout=self._layout
        )
        frame.sample_rate, frame.pts = self._rate, self._samples
        self._samples += frame.samples
        self._encode(frame)

    def close(self) -> None:
        """Write the rest and the end of the stream. Idempotent.

        Raises:
            OSError: The rest could not be written; the file is closed all the same.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._samples:
                self._encode(None)
        finally:
            try:
                self._container.close()
            except self._av.FFmpegError as fault:
                raise OSError(fault.errno, fault.strerror) from fault

    def _encode(self, frame: Any) -> None:
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        except self._av.FFmpegError as fault:
            raise OSError(fault.errno, fault.strerror) from fault
