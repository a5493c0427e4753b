"""The tones of telephone keys (ITU-T Q.23), for lines that carry no other sign of a key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import FRAME_BYTES, SAMPLE_RATE
from voice_agent.digits import GAP_S, KEY_S, KEYS, PAUSE, PAUSE_S

ROWS_HZ = (697.0, 770.0, 852.0, 941.0)
COLUMNS_HZ = (1209.0, 1336.0, 1477.0, 1633.0)
_LAYOUT = ("123A", "456B", "789C", "*0#D")
ROW_PEAK, COLUMN_PEAK = 6500, 8200
"""-14 and -12 dBFS, as loud as speech: the higher tone is sent 2 dB louder, since lines damp it more."""
RAMP_S = 0.002


def tones(digits: str) -> Iterator[bytes]:
    """Yield what pressing ``digits`` (`read_digits`) sounds like, in canonical frames."""
    for one in digits:
        pcm = np.zeros(round(PAUSE_S * SAMPLE_RATE), np.int16) if one == PAUSE else _key(one)
        whole = pcm.tobytes()
        for start in range(0, len(whole), FRAME_BYTES):
            yield whole[start : start + FRAME_BYTES].ljust(FRAME_BYTES, b"\0")


def frequencies(key: str) -> tuple[float, float]:
    """Return the two tones of a key, in Hz."""
    assert key in KEYS
    row = next(row for row, keys in enumerate(_LAYOUT) if key in keys)
    return ROWS_HZ[row], COLUMNS_HZ[_LAYOUT[row].index(key)]


def _key(key: str) -> NDArray[np.int16]:
    at = np.arange(round(KEY_S * SAMPLE_RATE)) / SAMPLE_RATE
    row, column = frequencies(key)
    tone = ROW_PEAK * np.sin(2 * np.pi * row * at) + COLUMN_PEAK * np.sin(2 * np.pi * column * at)
    # An edge would click, and a click has every frequency in it.
    sounding = np.round(tone * np.minimum(1.0, np.minimum(at, at[::-1]) / RAMP_S)).astype(np.int16)
    return np.concatenate([sounding, np.zeros(round(GAP_S * SAMPLE_RATE), np.int16)])
