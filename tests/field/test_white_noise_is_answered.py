"""A noisy line is taken for speech, or a frame of the wrong size ends the call.

Right: WebRTC's detector accepts only frames of 10, 20 or 30 ms and calls some noise speech. Wire audio
of any chunking is re-framed exactly, a stray last frame never raises, and noise at -30 dBFS makes no turn.
"""

import itertools

import numpy as np
import pytest
import webrtcvad
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import sounds
from voice_agent.audio.frames import FRAME_BYTES, Reframer
from voice_agent.speech.silero import SileroModel
from voice_agent.speech.vad import TwoStageDetector, WebRtcDetector


def test_the_engine_by_itself_does_raise_on_a_short_frame():
    with pytest.raises(Exception, match="processing frame"):
        webrtcvad.Vad(2).is_speech(bytes(100), 16000)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=30), st.integers(0, 2**31))
def test_any_chunking_on_the_wire_gives_the_same_verdicts(sizes: list[int], seed: int):
    pcm = np.random.default_rng(seed).normal(0, 3000, sum(sizes) // 2 + 1).astype("<i2").tobytes()[: sum(sizes)]
    whole, chunked, reframer = WebRtcDetector(), WebRtcDetector(), Reframer()
    expected = [whole.push(pcm[at : at + FRAME_BYTES]) for at in range(0, len(pcm) - FRAME_BYTES + 1, FRAME_BYTES)]
    ends = np.cumsum([0, *sizes])
    frames = [frame for a, b in itertools.pairwise(ends) for frame in reframer.push(pcm[a:b])]
    assert [chunked.push(frame) for frame in frames] == expected
    last = reframer.flush()
    assert not last or chunked.push(last) is not None


@pytest.mark.parametrize("size", [0, 1, 2, 319, 638, 639, 641, 1280])
def test_a_stray_frame_size_never_raises(size: int):
    assert not WebRtcDetector().push(bytes(size)).voiced


@pytest.mark.models
@pytest.mark.parametrize("quiet_s", [0, 4])
def test_white_noise_at_minus_30_dbfs_makes_no_turn_even_after_a_quiet_line(quiet_s: int):
    # WebRTC's model that has settled on a quiet line calls louder noise speech for good.
    wave = np.concatenate([sounds.white_noise(quiet_s, -70), sounds.white_noise(20, -30)])
    detector = TwoStageDetector(SileroModel.load())
    assert not any(detector.push(frame).voiced for frame in sounds.frames(sounds.to_pcm(wave)))
