"""The silence around a sentence, set alike for all, since an engine's own varies.

Piper puts 0 to 60 ms before the first sound, which delays every answer, and 100 to 270 ms after the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voice_agent.speech.alignment import Phoneme

LEAD_S = 0.015
"""Silence kept before the first sound."""
PAUSES_S = {".": 0.2, "!": 0.2, "?": 0.2, ":": 0.15, ";": 0.15, ",": 0.1}
"""Silence after the last sound, by the mark that ends the piece."""
PAUSE_S = 0.06
"""Silence after a piece that ends without a mark."""
_SILENCE_DBFS = -50.0
_WINDOW_S = 0.005


@dataclass(frozen=True, slots=True)
class Sentence:
    """One synthesised sentence: samples (-1 … 1) and, where their lengths are known, its phonemes."""

    samples: NDArray[np.float32]
    phonemes: list[Phoneme] | None
    last_mark: str


def set_silence(samples: NDArray[np.float32], phonemes: Sequence[Phoneme] | None, mark: str, rate: int) -> Sentence:
    """Give a sentence the configured silence at both ends, and its outer phonemes the length that leaves them."""
    start, end = _sounding(samples, rate)
    start = max(0, start - round(LEAD_S * rate))
    wanted_end = end + tail(mark, rate)
    cut = samples[start:wanted_end]
    padding = wanted_end - start - len(cut)
    if padding > 0:
        cut = np.concatenate([cut, np.zeros(padding, np.float32)])
    if phonemes is None:
        return Sentence(cut, None, mark)
    kept = _cut_front(phonemes, start)
    kept = _cut_front(kept[::-1], len(samples) - wanted_end)[::-1] if padding <= 0 else kept
    if padding > 0:
        kept[-1] = Phoneme(kept[-1].symbol, kept[-1].samples + padding)
    return Sentence(cut, kept, mark)


def tail(mark: str, rate: int) -> int:
    """Return the samples of silence after a piece that ends with ``mark``."""
    return round(PAUSES_S.get(mark, PAUSE_S) * rate)


def _sounding(samples: NDArray[np.float32], rate: int) -> tuple[int, int]:
    """Return where sound begins and ends; the whole of it if all is quiet."""
    window = max(1, round(_WINDOW_S * rate))
    whole = len(samples) // window * window
    power = np.square(samples[:whole]).reshape(-1, window).mean(axis=1)
    loud = np.flatnonzero(power > 10 ** (_SILENCE_DBFS / 10))
    if not len(loud):
        return 0, len(samples)
    return int(loud[0]) * window, min(len(samples), int(loud[-1] + 1) * window)


def _cut_front(phonemes: Sequence[Phoneme], samples: int) -> list[Phoneme]:
    kept = []
    for phoneme in phonemes:
        taken = min(samples, phoneme.samples)
        samples -= taken
        kept.append(Phoneme(phoneme.symbol, phoneme.samples - taken))
    return kept
