"""What is heard in place of audio that was lost: the last pitch period again and again, fading. One mono stream.

::

    good  ▇▅▂▅▇▅▂▅▇          lost          ▅▇▅▂▅ good
    out   ▇▅▂▅▇▅▂▅▇▅▂▅▇▅▂▅▆▄▂▃▅▃▁▃▃▂▁▁     ▅▇▅▂▅
                   │ `HOLD_S`   │ fades within `FADE_S`, then silence
                                       the good audio comes in over `BLEND_S`

A recogniser hears a hole of 20 ms as a stop consonant; a vowel that goes on it hears as a vowel. The method is that of
waveform substitution (ITU-T G.711, appendix I), without its delay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

HISTORY_S = 0.05
LOWEST_HZ, HIGHEST_HZ = 66, 400
"""Pitch of voices. A period is looked for within it, in the last `HISTORY_S`."""
HOLD_S = 0.02
FADE_S = 0.06
BLEND_S = 0.004

_Samples = NDArray[np.float32]


class Concealer:
    """Args: ``rate``: samples per second."""

    __slots__ = ("_at", "_blend", "_history", "_period", "_rate")

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._history: _Samples = np.zeros(int(HISTORY_S * rate), np.float32)
        self._blend = int(BLEND_S * rate)
        self._period: _Samples | None = None
        self._at = 0

    def good(self, pcm: bytes) -> bytes:
        """Take audio that has come, int16; return what is to be heard."""
        samples = np.frombuffer(pcm, np.int16)
        if self._period is not None and len(samples):
            length = min(self._blend, len(samples))
            weight = np.arange(1, length + 1, dtype=np.float32) / (length + 1)
            blended = samples.astype(np.float32)
            blended[:length] = blended[:length] * weight + self._go_on(length) * (1 - weight)
            samples = np.round(blended).astype(np.int16)
            self._period = None
        self._remember(samples.astype(np.float32))
        return samples.tobytes()

    def lost(self, samples: int) -> bytes:
        """Return int16 audio in place of ``samples`` that did not come."""
        if samples <= 0:
            return b""
        if self._period is None:
            self._period, self._at = self._last_period(), 0
        made = self._go_on(samples)
        return np.round(made).astype(np.int16).tobytes()

    def reset(self) -> None:
        """Forget what was heard: another stream begins."""
        self._history[:] = 0
        self._period = None

    def _remember(self, samples: _Samples) -> None:
        size = len(self._history)
        self._history = np.concatenate((self._history, samples))[-size:]

    def _go_on(self, length: int) -> _Samples:
        assert self._period is not None
        at = np.arange(self._at, self._at + length)
        self._at += length
        level = np.clip(1 - (at / self._rate - HOLD_S) / FADE_S, 0, 1).astype(np.float32)
        made: _Samples = self._period[at % len(self._period)] * level
        return made

    def _last_period(self) -> _Samples:
        """The last period of what was heard, its end bent so that it leads into its own beginning."""
        history = self._history
        shortest, longest = self._rate // HIGHEST_HZ, self._rate // LOWEST_HZ
        window = longest
        recent = history[-window:]
        energy = float(recent @ recent)
        if energy < 1:
            return np.zeros(shortest, np.float32)
        earlier = np.lib.stride_tricks.sliding_window_view(history[:-shortest], window)
        # The last window of `earlier` lies `shortest` before the present one.
        likeness = (earlier @ recent) / np.sqrt(np.einsum("ij,ij->i", earlier, earlier) * energy + 1)
        lags = shortest + len(earlier) - 1 - np.arange(len(earlier))
        usable = lags <= longest
        period = int(lags[usable][int(np.argmax(likeness[usable]))])
        cycle = history[-period:].copy()
        overlap = min(period // 4, len(history) - period)
        if overlap:
            weight = np.arange(1, overlap + 1, dtype=np.float32) / (overlap + 1)
            before = history[-period - overlap : -period]
            cycle[-overlap:] = cycle[-overlap:] * (1 - weight) + before * weight
        return cycle
