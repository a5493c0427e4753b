"""Hears keys in audio, as a receiver on a telephone line does. Knows nothing of how the agent makes its tones."""

from __future__ import annotations

import numpy as np

ROWS, COLUMNS = (697, 770, 852, 941), (1209, 1336, 1477, 1633)
KEYS = ("123A", "456B", "789C", "*0#D")
BLOCK_S = 0.02


def keys_in(pcm: bytes, rate: int = 16000) -> str:
    """Return the keys that sound for at least 40 ms each, with silence between two."""
    samples = np.frombuffer(pcm[: len(pcm) & ~1], "<i2").astype(np.float64)
    size, found, current, blocks = int(rate * BLOCK_S), "", "", 0
    for at in range(0, len(samples) - size + 1, size):
        key = _key(samples[at : at + size], rate)
        blocks = blocks + 1 if key and key == current else 1
        if key and blocks == 2:
            found += key
        current = key
    return found


def _key(block: np.ndarray, rate: int) -> str:
    power = float(np.mean(block**2))
    if power < 500**2:
        return ""
    at = np.arange(len(block)) / rate

    def share(hz: int) -> float:
        return float(2 * abs(np.mean(block * np.exp(-2j * np.pi * hz * at))) ** 2 / power)

    rows, columns = [share(hz) for hz in ROWS], [share(hz) for hz in COLUMNS]
    row, column = int(np.argmax(rows)), int(np.argmax(columns))
    # Two tones, both of them strong, and next to nothing else.
    if min(rows[row], columns[column]) < 0.2 or rows[row] + columns[column] < 0.8:
        return ""
    return KEYS[row][column]
