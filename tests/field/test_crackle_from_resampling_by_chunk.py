"""Speech crackles, and frames come out two bytes short.

Cause: each chunk resampled on its own, without the filter's state. Right: a sine sent in 20 ms chunks
equals the whole buffer's result (SNR > 60 dB) at exactly the right length, in frames of exactly 640 bytes.
"""

import numpy as np
import pytest

from voice_agent.audio.frames import FRAME_BYTES, Reframer
from voice_agent.audio.resample import Resampler, resample

RATES = [(8000, 16000), (16000, 8000), (24000, 16000), (16000, 24000), (48000, 16000), (16000, 48000), (22050, 16000)]


def sine(rate: int) -> bytes:
    return (8000 * np.sin(2 * np.pi * 440 * np.arange(rate * 3) / rate)).astype("<i2").tobytes()


def snr_db(signal: bytes, other: bytes) -> float:
    clean = np.frombuffer(signal, "<i2").astype(float)
    noise = np.frombuffer(other, "<i2") - clean
    return float(10 * np.log10((clean @ clean) / max(noise @ noise, 1e-9)))


def by_chunks(pcm: bytes, from_hz: int, to_hz: int) -> bytes:
    stream, size = Resampler(from_hz, to_hz), from_hz // 50 * 2
    return b"".join(stream.push(pcm[at : at + size]) for at in range(0, len(pcm), size)) + stream.flush()


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_20_ms_chunks_equal_the_whole_buffer(from_hz: int, to_hz: int):
    pcm = sine(from_hz)
    whole, chunked = resample(pcm, from_hz, to_hz), by_chunks(pcm, from_hz, to_hz)
    assert len(chunked) == len(whole) == 3 * to_hz * 2
    assert snr_db(whole, chunked) > 60


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
def test_no_seam_is_heard_at_20_ms(from_hz: int, to_hz: int):
    # Against the tone itself, not against another run of the same code: a click is broadband.
    out = np.frombuffer(by_chunks(sine(from_hz), from_hz, to_hz), "<i2")[to_hz // 2 : 2 * to_hz].astype(float)
    spectrum = np.abs(np.fft.rfft(out * np.blackman(len(out)))) ** 2
    hz = np.fft.rfftfreq(len(out), 1 / to_hz)
    assert 10 * np.log10(spectrum.sum() / spectrum[np.abs(hz - 440) > 10].sum()) > 60


def test_resampling_each_chunk_alone_would_be_caught():
    pcm = sine(8000)
    stateless = b"".join(resample(pcm[at : at + 320], 8000, 16000) for at in range(0, len(pcm), 320))
    assert snr_db(resample(pcm, 8000, 16000), stateless) < 60


def test_every_frame_of_a_telephone_line_has_640_bytes():
    stream, reframer, pcm = Resampler(8000, 16000), Reframer(), sine(8000)
    frames = [f for at in range(0, len(pcm), 320) for f in reframer.push(stream.push(pcm[at : at + 320]))]
    frames += reframer.push(stream.flush())
    assert {len(frame) for frame in frames} == {FRAME_BYTES}
    assert len(frames) == 150
    assert reframer.buffered == 0
