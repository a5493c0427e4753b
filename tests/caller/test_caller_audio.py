import numpy as np
import pytest

from voice_agent.caller.audio import RATES, is_silent, voice_bounds
from voice_agent.caller.microphone import ROOM_NOISE_DBFS, Microphone


def dbfs(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, "<i2").astype(float)
    return 20 * np.log10(np.sqrt(np.mean(samples**2)) / 32768)


@pytest.mark.parametrize("rate", RATES)
def test_the_room_is_faintly_audible_in_every_frame_and_never_digitally_silent(rate):
    microphone = Microphone(rate)
    frames = [microphone.frame() for _ in range(400)]
    assert {len(frame) for frame in frames} == {rate // 50 * 2}
    assert dbfs(b"".join(frames)) == pytest.approx(ROOM_NOISE_DBFS, abs=0.5)
    assert not any(is_silent(frame) for frame in frames)


def test_a_line_starts_with_the_next_frame_and_fills_the_last_one_with_room_noise():
    microphone = Microphone(16000)
    microphone.frame()
    microphone.speak(np.full(500, 9000, np.int16))
    first, second, third = (np.frombuffer(microphone.frame(), "<i2") for _ in range(3))
    assert np.all(np.abs(first.astype(int) - 9000) < 100)
    assert np.all(np.abs(second[:180].astype(int) - 9000) < 100)
    assert np.all(np.abs(second[180:]) < 100)
    assert np.all(np.abs(third) < 100)
    assert not microphone.speaking


def test_full_scale_speech_is_clipped_and_does_not_wrap():
    microphone = Microphone(16000)
    microphone.speak(np.full(320, 32767, np.int16))
    assert np.frombuffer(microphone.frame(), "<i2").min() > 32000


def test_the_voice_of_a_line_lies_where_it_is_loud():
    pcm = np.zeros(16000, np.int16)
    pcm[4000:12000] = (np.sin(np.arange(8000) * 0.3) * 8000).astype(np.int16)
    first, last = voice_bounds(pcm, 16000)
    assert (first, last) == (pytest.approx(4000, abs=160), pytest.approx(12000, abs=160))


@pytest.mark.parametrize("samples", [0, 1, 50, 16000])
def test_a_line_without_voice_is_voice_from_end_to_end(samples):
    assert voice_bounds(np.zeros(samples, np.int16), 16000) == (0, samples)
