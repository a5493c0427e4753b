"""A far end with a loudspeaker, a microphone and a room: what the agent says comes back, under what the caller says."""

from __future__ import annotations

import asyncio

import numpy as np
from numpy.typing import NDArray

from tests.fakes.wire import FakeWire
from voice_agent.audio.frames import FRAME_SAMPLES, SAMPLE_RATE

_TAPS = 30
_ROOM_SAMPLES = 1920
"""Reflections within 120 ms."""


class AcousticWire(FakeWire):
    """A `FakeWire` whose frames are sound.

    Args:
        echo_db: Level of the agent's echo relative to what was played; None on headphones.
        delay_s: From playing to hearing it again.
        noise_dbfs: White noise of the room.
    """

    def __init__(
        self,
        seconds: float,
        *,
        echo_db: float | None = None,
        delay_s: float = 0.15,
        noise_dbfs: float = -65,
        seed: int = 3,
    ) -> None:
        super().__init__(seconds)
        random = np.random.default_rng(seed)
        samples = round((seconds + 3) * SAMPLE_RATE)
        self._microphone = random.normal(0, 32768 * 10 ** (noise_dbfs / 20), samples)
        self._speaker = np.zeros(samples)
        self._delay = round(delay_s * SAMPLE_RATE)
        at = np.concatenate([[0], random.integers(8, _ROOM_SAMPLES, _TAPS)])
        gain = np.concatenate([[1.0], random.normal(0, 0.35, _TAPS) * np.exp(-at[1:] / 600)])
        self._at, self._gain = at, gain / np.sqrt((gain**2).sum())
        self._coupling = 0.0 if echo_db is None else 10 ** (echo_db / 20)

    def voice(self, at: float, pcm: NDArray[np.int16], dbfs: float | None = None) -> float:
        """The caller's sound begins at ``at``, at the level of its loud parts if one is given; returns its end."""
        wave = pcm.astype(float)
        if dbfs is not None:
            wave = wave * 32768 * 10 ** (dbfs / 20) / loudness(wave)
        first = round(at * SAMPLE_RATE)
        self._microphone[first : first + len(wave)] += wave[: len(self._microphone) - first]
        return at + len(wave) / SAMPLE_RATE

    def send_audio(self, frame: bytes) -> None:
        before = len(self.frames)
        super().send_audio(frame)
        if len(self.frames) > before:
            first = round((self._play_until - 0.02 - self.began) * SAMPLE_RATE)
            self._speaker[first : first + FRAME_SAMPLES] = np.frombuffer(frame, np.int16)

    def clear(self) -> None:
        super().clear()
        self._speaker[round((asyncio.get_running_loop().time() - self.began) * SAMPLE_RATE) :] = 0.0

    def _frame(self, now: float) -> bytes:
        first = round(now * SAMPLE_RATE)
        wave = self._microphone[first : first + FRAME_SAMPLES].copy()
        if self._coupling:
            for at, gain in zip(self._at, self._gain, strict=True):
                start = first - FRAME_SAMPLES - self._delay - at
                if start >= 0:
                    wave += self._coupling * gain * self._speaker[start : start + FRAME_SAMPLES]
        return np.clip(wave, -32768, 32767).astype(np.int16).tobytes()


def loudness(wave: NDArray[np.float64]) -> float:
    """Return the root mean square of the frames that are within 25 dB of the loudest."""
    frames = wave[: len(wave) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    power = (frames**2).mean(axis=1)
    return float(np.sqrt(power[power > power.max() / 300].mean()))
