"""Level in dB of full scale, and a fade that ends in silence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.audio.frames import SILENCE
from voice_agent.audio.level import QUIETEST_DBFS, dbfs, fade_out

samples = st.lists(st.integers(-32768, 32767), max_size=400).map(lambda values: np.array(values, "<i2"))


@pytest.mark.parametrize(("value", "level"), [(-32768, 0.0), (16384, -6.02), (3277, -20.0), (1, -90.3)])
def test_a_constant_has_its_own_level(value: int, level: float):
    assert dbfs(np.full(320, value, "<i2").tobytes()) == pytest.approx(level, abs=0.01)


def test_a_full_scale_sine_is_3_db_below_a_square():
    sine = (32767 * np.sin(2 * np.pi * np.arange(320) / 32)).astype("<i2")
    assert dbfs(sine.tobytes()) == pytest.approx(-3.01, abs=0.01)


@pytest.mark.parametrize("frame", [SILENCE, b""])
def test_silence_and_nothing_are_at_the_bottom(frame: bytes):
    assert dbfs(frame) == QUIETEST_DBFS == -96.0


@given(samples)
def test_the_level_stays_in_its_range(pcm: np.ndarray):
    assert -96.0 <= dbfs(pcm.tobytes()) <= 0.0


@given(samples, st.integers(-5, 500))
def test_a_fade_out_touches_only_its_end_and_falls_to_zero(pcm: np.ndarray, length: int):
    out = np.frombuffer(fade_out(pcm.tobytes(), length), "<i2")
    length = max(0, min(length, len(pcm)))
    assert out[: len(pcm) - length].tolist() == pcm[: len(pcm) - length].tolist()
    assert len(out) == len(pcm)
    assert length == 0 or out[-1] == 0
    assert (np.abs(out.astype(int)) <= np.abs(pcm.astype(int))).all()


@given(st.integers(1, 32767), st.integers(1, 320))
def test_a_fade_is_monotonic(value: int, length: int):
    out = np.frombuffer(fade_out(np.full(320, value, "<i2").tobytes(), length), "<i2").astype(int)
    assert (np.diff(out) <= 0).all()
