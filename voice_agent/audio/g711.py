"""G.711 µ-law and A-law, by table.

The tables are computed from the standard (ITU-T G.711, 11/1988): eight segments per sign, sixteen
steps per segment, each segment's steps twice as wide as those of the one below. Every int16 has an
entry, so the loudest sample saturates at the last step and nothing wraps around.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MU_BIAS = 33
_MU_LOUDEST = 8191 - _MU_BIAS


def _segment(magnitude: NDArray[np.int32], lowest_bits: int) -> NDArray[np.int32]:
    """Return the segment (0 … 7) of each magnitude; the first holds numbers of up to ``lowest_bits`` bits."""
    ends = (1 << np.arange(lowest_bits, lowest_bits + 7)) - 1
    return np.searchsorted(ends, magnitude, side="left").astype(np.int32)


def _ulaw_codes(samples: NDArray[np.int32]) -> NDArray[np.uint8]:
    # The standard counts in 14 bits. It sends codes inverted; the sign bit is 1 for positive values.
    linear = samples >> 2
    magnitude = np.minimum(np.abs(linear), _MU_LOUDEST) + _MU_BIAS
    segment = _segment(magnitude, 6)
    code = (segment << 4) | ((magnitude >> (segment + 1)) & 0x0F)
    inverted: NDArray[np.uint8] = (code ^ np.where(linear < 0, 0x7F, 0xFF)).astype(np.uint8)
    return inverted


def _alaw_codes(samples: NDArray[np.int32]) -> NDArray[np.uint8]:
    # The standard counts in 13 bits and inverts every second bit.
    linear = samples >> 3
    magnitude = np.where(linear < 0, -linear - 1, linear)
    segment = _segment(magnitude, 5)
    code = (segment << 4) | ((magnitude >> np.maximum(segment, 1)) & 0x0F)
    return (code ^ np.where(linear < 0, 0x55, 0xD5)).astype(np.uint8)


def _ulaw_samples() -> NDArray[np.int16]:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    magnitude = ((2 * (code & 0x0F) + _MU_BIAS) << ((code >> 4) & 7)) - _MU_BIAS
    return np.where(code & 0x80, -magnitude * 4, magnitude * 4).astype(np.int16)


def _alaw_samples() -> NDArray[np.int16]:
    code = np.arange(256, dtype=np.int32) ^ 0x55
    segment = (code >> 4) & 7
    step = 2 * (code & 0x0F) + 1
    magnitude = np.where(segment == 0, step, (step + 32) << np.maximum(segment - 1, 0))
    return np.where(code & 0x80, magnitude * 8, -magnitude * 8).astype(np.int16)


# Indexed by the sample's bits as an unsigned number: 0 … 32767, then -32768 … -1.
_EVERY_SAMPLE = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)
_ULAW_ENCODE = _ulaw_codes(_EVERY_SAMPLE)
_ALAW_ENCODE = _alaw_codes(_EVERY_SAMPLE)
_ULAW_DECODE = _ulaw_samples()
_ALAW_DECODE = _alaw_samples()


def ulaw_encode(pcm: bytes) -> bytes:
    """Encode int16 PCM as µ-law, one byte a sample.

    Raises:
        ValueError: Half a sample at the end.
    """
    return _ULAW_ENCODE[np.frombuffer(pcm, np.uint16)].tobytes()


def ulaw_decode(codes: bytes) -> bytes:
    """Decode µ-law to int16 PCM, two bytes a code. Every byte is a valid code."""
    return _ULAW_DECODE[np.frombuffer(codes, np.uint8)].tobytes()


def alaw_encode(pcm: bytes) -> bytes:
    """Encode int16 PCM as A-law, one byte a sample.

    Raises:
        ValueError: Half a sample at the end.
    """
    return _ALAW_ENCODE[np.frombuffer(pcm, np.uint16)].tobytes()


def alaw_decode(codes: bytes) -> bytes:
    """Decode A-law to int16 PCM, two bytes a code. Every byte is a valid code."""
    return _ALAW_DECODE[np.frombuffer(codes, np.uint8)].tobytes()
