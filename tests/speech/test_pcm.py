"""Only bare samples pass for audio."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.pcm import check_pcm
from voice_agent.speech.protocols import EngineError


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "no audio"),
        (b"\x00\x00\x01", "3 bytes"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "WAV"),
        (b"OggS" + bytes(100), "Ogg"),
        (b"ID3\x03" + bytes(100), "MP3"),
        (b'{"error": "quota exceeded", "code": 429}', "text"),
        (b"<html><body>Bad gateway</body></html>", "text"),
    ],
)
def test_what_is_no_pcm_is_refused_with_the_reason(data: bytes, what: str) -> None:
    with pytest.raises(EngineError, match=what):
        check_pcm(data)


@given(st.integers(4, 2000), st.floats(0.001, 1.0), st.integers(0, 2**31))
def test_noise_of_any_level_passes(samples: int, level: float, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, level * 8000, samples)
    pcm = np.clip(noise, -32768, 32767).astype("<i2").tobytes()
    assert check_pcm(pcm) is pcm


def test_silence_passes() -> None:
    assert check_pcm(bytes(640)) == bytes(640)
