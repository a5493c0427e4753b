"""Facts about PCM that the simulated caller needs: 20 ms frames at the wire's rate, silence, where voice lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FRAME_S = 0.02
"""Length of one frame: what telephony and every wire of the field uses."""

RATES = (8000, 16000, 24000, 48000)
"""Sample rates a wire may be asked for."""

_WINDOW_S = 0.01
_VOICE_RANGE_DB = 35.0
"""Speech lies within this range of its loudest window; what is fainter is breath, room or codec noise."""


def frame_samples(rate: int) -> int:
    """Return the samples in one 20 ms frame at ``rate`` Hz."""
    return round(rate * FRAME_S)


def is_silent(pcm: bytes) -> bool:
    """Tell whether every sample is zero. Wires that always send fill the agent's pauses with such frames."""
    return pcm.count(0) == len(pcm)


def voice_bounds(pcm: NDArray[np.int16], rate: int) -> tuple[int, int]:
    """Return the first and one past the last sample of the voice in ``pcm``; ``(0, len(pcm))`` if there is none.

    Judged by energy in windows of 10 ms: latencies are measured from where the caller really
    starts and stops being audible, not from where a file starts and stops.
    """
    window = round(rate * _WINDOW_S)
    count = len(pcm) // window
    if count == 0:
        return 0, len(pcm)
    blocks = pcm[: count * window].astype(np.float64).reshape(count, window)
    level = 10 * np.log10(np.mean(blocks**2, axis=1) + 1e-9)
    loud = np.flatnonzero(level > max(float(level.max()) - _VOICE_RANGE_DB, 0.0))
    if len(loud) == 0:
        return 0, len(pcm)
    return int(loud[0]) * window, (int(loud[-1]) + 1) * window
