"""G.711 against the standard's own values, and against Python's own codec where it still exists."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode

EVERY_SAMPLE = np.arange(-32768, 32768).astype("<i2")
EVERY_CODE = bytes(range(256))

# Tables 1a and 2a of ITU-T G.711: values at the decoder output for the loudest code, one code of each
# segment and the quietest code, as 14-bit (µ-law) and 13-bit (A-law) numbers.
ULAW_POSITIVE = {0x80: 8031, 0x8F: 4191, 0x9F: 2079, 0xAF: 1023, 0xBF: 495, 0xCF: 231, 0xDF: 99, 0xEF: 33, 0xFF: 0}
ALAW_POSITIVE = {0xAA: 4032, 0xA5: 2112, 0xB5: 1056, 0x85: 528, 0x95: 264, 0xE5: 132, 0xF5: 66, 0xD5: 1}


def decoded(codes: bytes, decode) -> list[int]:
    return np.frombuffer(decode(codes), np.int16).tolist()


@pytest.mark.parametrize(("code", "value"), ULAW_POSITIVE.items())
def test_ulaw_codes_stand_for_the_standards_values_in_both_signs(code: int, value: int):
    assert decoded(bytes([code, code ^ 0x80]), ulaw_decode) == [value * 4, -value * 4]


@pytest.mark.parametrize(("code", "value"), ALAW_POSITIVE.items())
def test_alaw_codes_stand_for_the_standards_values_in_both_signs(code: int, value: int):
    assert decoded(bytes([code, code ^ 0x80]), alaw_decode) == [value * 8, -value * 8]


@pytest.mark.parametrize(("encode", "decode"), [(ulaw_encode, ulaw_decode), (alaw_encode, alaw_decode)])
def test_decoding_and_encoding_again_gives_the_same_samples(encode, decode):
    pcm = decode(EVERY_CODE)
    assert decode(encode(pcm)) == pcm


@pytest.mark.parametrize(("encode", "decode"), [(ulaw_encode, ulaw_decode), (alaw_encode, alaw_decode)])
def test_every_sample_is_off_by_at_most_half_a_step_and_keeps_its_order(encode, decode):
    out = np.frombuffer(decode(encode(EVERY_SAMPLE.tobytes())), np.int16).astype(int)
    error = np.abs(out - EVERY_SAMPLE)
    # The widest step is 1024, the narrowest 8 (µ-law) or 16 (A-law); above the last one, it saturates.
    assert (error <= np.maximum(16, np.abs(EVERY_SAMPLE.astype(int)) / 16 + 8)).all()
    assert (np.diff(out) >= 0).all()


@pytest.mark.parametrize("law", ["ulaw", "alaw"])
def test_all_samples_and_codes_agree_with_the_standard_library(law: str):
    try:
        audioop = importlib.import_module("audioop")
    except ImportError:
        # Python 3.13 has no audioop; there the golden values above stand alone.
        return
    encode, decode = {"ulaw": (ulaw_encode, ulaw_decode), "alaw": (alaw_encode, alaw_decode)}[law]
    assert encode(EVERY_SAMPLE.tobytes()) == getattr(audioop, f"lin2{law}")(EVERY_SAMPLE.tobytes(), 2)
    assert decode(EVERY_CODE) == getattr(audioop, f"{law}2lin")(EVERY_CODE, 2)


@given(st.binary(max_size=999))
def test_one_byte_a_sample_each_way(data: bytes):
    assert len(ulaw_decode(data)) == len(alaw_decode(data)) == 2 * len(data)
    even = data[: len(data) & ~1]
    assert len(ulaw_encode(even)) == len(alaw_encode(even)) == len(even) // 2


def test_half_a_sample_is_an_error():
    with pytest.raises(ValueError, match="multiple of element size"):
        ulaw_encode(b"abc")
