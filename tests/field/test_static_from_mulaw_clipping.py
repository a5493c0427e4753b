"""Loud speech turns to static on a telephone line (the µ-law part).

Cause: samples near full scale overflow the encoder's bias and come back near zero or with the other
sign. Right: they saturate; encoding any int16 keeps its sign and the order of loudness.
"""

import numpy as np
import pytest

from voice_agent.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample

CODECS = [(ulaw_encode, ulaw_decode), (alaw_encode, alaw_decode)]


@pytest.mark.parametrize(("encode", "decode"), CODECS)
@pytest.mark.parametrize("sample", [32767, 32766, 32636, 32635, 32124, -32768, -32767, -32636])
def test_full_scale_saturates_with_its_sign(encode, decode, sample: int):
    (back,) = np.frombuffer(decode(encode(np.array([sample], "<i2").tobytes())), "<i2")
    assert np.sign(back) == np.sign(sample)
    assert abs(int(back)) >= 31_000


@pytest.mark.parametrize(("encode", "decode"), CODECS)
def test_a_clipped_voice_survives_the_whole_way_to_the_telephone(encode, decode):
    at = np.arange(16000) / 16000
    shouted = np.clip(80_000 * np.sin(2 * np.pi * 300 * at), -32768, 32767).astype("<i2").tobytes()
    narrow = resample(shouted, 16000, 8000)
    heard = np.frombuffer(decode(encode(narrow)), "<i2").astype(float)
    sent = np.frombuffer(narrow, "<i2").astype(float)
    assert 10 * np.log10((sent @ sent) / ((heard - sent) @ (heard - sent))) > 30


@pytest.mark.parametrize(("encode", "decode"), CODECS)
def test_silence_stays_silence(encode, decode):
    assert np.abs(np.frombuffer(decode(encode(bytes(640))), "<i2")).max() <= 8
