"""Conversion chunk by chunk equals conversion at once, at exactly the right length and promptly."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.audio.resample import Resampler, resample

RATES = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]


def sine(hz: float, rate: int, seconds: float = 1.0, peak: float = 8000) -> bytes:
    at = np.arange(round(rate * seconds)) / rate
    return (peak * np.sin(2 * np.pi * hz * at)).astype("<i2").tobytes()


def purity_db(pcm: bytes, hz: float, rate: int) -> tuple[float, float]:
    """Return amplitude, and power of the best-fitting sine over the power of all else, away from the ends."""
    samples = np.frombuffer(pcm, np.int16).astype(float)[rate // 10 : -rate // 10]
    at = 2 * np.pi * hz * np.arange(len(samples)) / rate
    basis = np.stack([np.sin(at), np.cos(at)], axis=1)
    weights, *_ = np.linalg.lstsq(basis, samples, rcond=None)
    rest = samples - basis @ weights
    return float(np.hypot(*weights)), 10 * np.log10((samples @ samples) / (rest @ rest))


@settings(max_examples=60)
@given(
    st.sampled_from(RATES),
    st.sampled_from(RATES),
    st.lists(st.integers(0, 1500), max_size=20),
    st.integers(0, 2**31),
)
def test_any_chunking_gives_the_whole_buffers_samples_and_the_exact_length(
    from_hz: int, to_hz: int, sizes: list[int], seed: int
):
    pcm = np.random.default_rng(seed).normal(0, 3000, sum(sizes)).astype("<i2").tobytes()
    ends = np.cumsum([0, *sizes]) * 2
    stream = Resampler(from_hz, to_hz)
    out = b"".join(stream.push(pcm[a:b]) for a, b in itertools.pairwise(ends)) + stream.flush()
    assert len(out) // 2 == int(np.floor(sum(sizes) * to_hz / from_hz + 0.5))
    whole = np.frombuffer(resample(pcm, from_hz, to_hz), np.int16).astype(int)
    # soxr dithers as it rounds to 16 bits, so a sample may differ in its last bits.
    assert np.abs(np.frombuffer(out, np.int16) - whole).max(initial=0) <= 3


@given(st.lists(st.integers(0, 99), min_size=1, max_size=20), st.sampled_from([16000, 48000]))
def test_half_a_sample_waits_for_its_other_half(sizes: list[int], to_hz: int):
    pcm = sine(440, 16000)[: sum(sizes)]
    stream = Resampler(16000, to_hz)
    ends = np.cumsum([0, *sizes])
    out = b"".join(stream.push(pcm[a:b]) for a, b in itertools.pairwise(ends)) + stream.flush()
    assert len(out) == len(pcm) // 2 * 2 * (to_hz // 16000)


@pytest.mark.parametrize("to_hz", RATES)
@pytest.mark.parametrize("from_hz", [8000, 22050, 48000])
def test_a_tone_keeps_its_level_and_gains_no_distortion(from_hz: int, to_hz: int):
    amplitude, purity = purity_db(resample(sine(1000, from_hz), from_hz, to_hz), 1000, to_hz)
    assert amplitude == pytest.approx(8000, rel=0.01)
    assert purity > 65


@pytest.mark.parametrize("from_hz", [16000, 24000, 48000])
def test_what_the_target_rate_cannot_hold_is_filtered_out_not_folded_back(from_hz: int):
    loud = np.frombuffer(resample(sine(5000, from_hz), from_hz, 8000), np.int16)[400:-400].astype(float)
    assert np.sqrt((loud**2).mean()) < 3


@pytest.mark.parametrize(("from_hz", "to_hz"), [(8000, 16000), (16000, 8000), (24000, 16000), (48000, 16000)])
def test_each_20_ms_chunk_gives_20_ms_after_a_start_up_of_at_most_30_ms(from_hz: int, to_hz: int):
    stream = Resampler(from_hz, to_hz)
    sizes = [len(stream.push(bytes(from_hz // 50 * 2))) // 2 for _ in range(50)]
    assert sum(sizes) >= to_hz - to_hz * 0.030
    assert set(sizes[3:]) == {to_hz // 50}


def test_equal_rates_change_nothing():
    pcm = sine(440, 16000)
    stream = Resampler(16000, 16000)
    assert stream.push(pcm) is pcm
    assert stream.flush() == b""


def test_full_scale_saturates_and_does_not_wrap():
    square = np.where(np.arange(8000) % 16 < 8, 32767, -32768).astype("<i2")
    out = np.frombuffer(resample(square.tobytes(), 8000, 16000), np.int16)
    # The middle of each half period must keep its sign; a wrap-around would flip it.
    assert (out[320:-320].reshape(-1, 32)[:, 4:12] > 20000).all()
    assert (out[320:-320].reshape(-1, 32)[:, 20:28] < -20000).all()


def test_a_stream_starts_afresh_after_its_flush():
    stream = Resampler(8000, 16000)
    first = stream.push(sine(440, 8000)) + stream.flush()
    second = stream.push(sine(440, 8000)) + stream.flush()
    assert len(first) == len(second) == 32000
    assert np.abs(np.frombuffer(first, np.int16).astype(int) - np.frombuffer(second, np.int16)).max() <= 3


@pytest.mark.parametrize(("from_hz", "to_hz"), [(7999, 16000), (16000, 48001), (0, 16000), (-8000, 8000)])
def test_rates_beyond_the_range_are_refused_with_the_range(from_hz: int, to_hz: int):
    with pytest.raises(ValueError, match="8000 to 48000"):
        Resampler(from_hz, to_hz)
    with pytest.raises(ValueError, match="8000 to 48000"):
        resample(b"", from_hz, to_hz)
