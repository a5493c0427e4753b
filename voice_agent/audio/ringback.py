"""The sound of a telephone that rings at the other end, and any sound as endless frames."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from voice_agent.audio.frames import FRAME_BYTES, SAMPLE_RATE

TONES_HZ = (440.0, 480.0)
"""Ringing tone of North America (ITU-T E.180 Supplement 2); callers elsewhere know it from films."""
RINGS_S, RESTS_S = 2.0, 2.0
"""The standard rests for 4 s, which callers who wait for an agent take for a dead line."""
PEAK = 1400
"""About -30 dBFS: clearly softer than speech."""
RAMP_S = 0.03


def ringback() -> bytes:
    """Return one ring and its rest, canonical PCM."""
    at = np.arange(round(RINGS_S * SAMPLE_RATE)) / SAMPLE_RATE
    tone = sum(np.sin(2 * np.pi * hz * at) for hz in TONES_HZ) / len(TONES_HZ)
    # Without edges that click.
    edge = np.minimum(1.0, np.minimum(at, at[::-1]) / RAMP_S)
    ring = np.round(tone * edge * PEAK).astype(np.int16)
    return ring.tobytes() + bytes(2 * round(RESTS_S * SAMPLE_RATE))


def endless(pcm: bytes) -> Iterator[bytes]:
    """Yield ``pcm`` in frames, over and over; its last frame is padded. Nothing comes of no audio."""
    while pcm:
        for start in range(0, len(pcm), FRAME_BYTES):
            yield pcm[start : start + FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
