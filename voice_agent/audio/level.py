"""Loudness of a frame, and a fade so that cut speech does not click."""

from __future__ import annotations

import math

import numpy as np

QUIETEST_DBFS = -96.0
"""Level of digital silence: the range of 16 bits."""

_FULL_SCALE_SQUARED = 32768.0**2


def dbfs(frame: bytes) -> float:
    """Return the root mean square of int16 PCM in dB relative to full scale, -96 … 0 (about 3 µs a frame)."""
    samples = np.frombuffer(frame, np.int16).astype(np.float32)
    if not len(samples):
        return QUIETEST_DBFS
    power = float(samples @ samples) / len(samples) / _FULL_SCALE_SQUARED
    return max(QUIETEST_DBFS, 10.0 * math.log10(power)) if power > 0 else QUIETEST_DBFS


def fade_out(pcm: bytes, samples: int) -> bytes:
    """Return ``pcm`` with its last ``samples`` samples faded linearly to zero (all, if it is shorter)."""
    faded = np.frombuffer(pcm, np.int16).copy()
    length = min(samples, len(faded))
    if length <= 0:
        return pcm
    faded[-length:] = faded[-length:] * np.arange(length - 1, -1, -1, dtype=np.float32) / length
    return faded.tobytes()
