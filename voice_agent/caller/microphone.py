"""The caller's mouth: faint room noise, always, and a line on top of it when one is spoken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voice_agent.caller.audio import frame_samples

ROOM_NOISE_DBFS = -69.0
"""Level of the room: a quiet office on a headset. Digital silence would be kinder to an agent than any phone is."""

_NOISE_S = 3.1
"""The noise repeats after this long, which is no multiple of a frame, so no two frames in a row are alike."""


class Microphone:
    """Yields one 20 ms frame after another. Deterministic for a given ``seed``."""

    def __init__(self, rate: int, seed: int = 1) -> None:
        self._samples = frame_samples(rate)
        deviation = 32768 * 10 ** (ROOM_NOISE_DBFS / 20)
        noise = np.random.default_rng(seed).standard_normal(int(rate * _NOISE_S) + self._samples) * deviation
        self._noise: NDArray[np.int32] = np.rint(noise).astype(np.int32)
        self._noise_at = 0
        self._line: NDArray[np.int16] | None = None
        self._line_at = 0

    @property
    def speaking(self) -> bool:
        """Whether a line is being spoken."""
        return self._line is not None

    def speak(self, pcm: NDArray[np.int16]) -> None:
        """Start a line with the next frame. A line still being spoken is cut off."""
        self._line, self._line_at = pcm, 0

    def frame(self) -> bytes:
        """Return the next 20 ms as PCM16 little-endian."""
        mixed = self._noise[self._noise_at : self._noise_at + self._samples].copy()
        self._noise_at = (self._noise_at + self._samples) % (len(self._noise) - self._samples)
        if self._line is not None:
            piece = self._line[self._line_at : self._line_at + self._samples]
            mixed[: len(piece)] += piece
            self._line_at += self._samples
            if self._line_at >= len(self._line):
                self._line = None
        return np.clip(mixed, -32768, 32767).astype("<i2").tobytes()
