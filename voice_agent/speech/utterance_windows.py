"""Cuts a long utterance into windows that a recogniser can take, at quiet points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_RATE

MAX_WINDOW_S = 24.0
"""Leaves at least 6 s of padding in Whisper's longest window of 30 s."""
SEARCH_S = 8.0
"""The cut is sought in the last seconds before the longest allowed one."""
_STEP = SAMPLE_RATE // 50
_QUIET_STEPS = 10


def cut_at_pauses(pcm: NDArray[np.int16], max_window_s: float = MAX_WINDOW_S) -> list[NDArray[np.int16]]:
    """Return the utterance in pieces of at most ``max_window_s`` seconds; joined they are the input.

    Each cut lies in the middle of the quietest 200 ms of the 8 s before the limit::

        |------------- speech ------------.__.---- speech ----|
                                  |<- sought 8 s ->| limit
                                           ^ cut

    Args:
        pcm: 16 kHz mono samples, shape (n,).
    """
    limit = int(max_window_s * SAMPLE_RATE)
    search = min(int(SEARCH_S * SAMPLE_RATE), limit // 2)
    pieces = []
    while len(pcm) > limit:
        cut = limit - search + _quietest(pcm[limit - search : limit])
        pieces.append(pcm[:cut])
        pcm = pcm[cut:]
    pieces.append(pcm)
    return pieces


def _quietest(pcm: NDArray[np.int16]) -> int:
    """Return the sample in the middle of the quietest 200 ms."""
    steps = len(pcm) // _STEP
    energy = np.square(pcm[: steps * _STEP].reshape(steps, _STEP).astype(np.float32)).sum(axis=1)
    level = np.convolve(energy, np.ones(_QUIET_STEPS, dtype=np.float32), mode="valid")
    return (int(level.argmin()) + _QUIET_STEPS // 2) * _STEP
