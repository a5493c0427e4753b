"""A caller who is muted from the start floods the log or is treated as a fault (the ear's part).

Right: silence is a valid state, however long. It is judged unvoiced without a warning, and the voice that
follows when the caller unmutes is found at once.
"""

import logging

import numpy as np
import pytest

from tests.support import sounds
from voice_agent.audio.frames import SILENCE
from voice_agent.audio.level import QUIETEST_DBFS
from voice_agent.speech.silero import SileroModel
from voice_agent.speech.vad import TwoStageDetector


@pytest.mark.models
def test_ten_muted_minutes_are_silence_and_the_first_words_are_found(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    detector = TwoStageDetector(SileroModel.load())
    verdicts = {detector.push(SILENCE) for _ in range(10 * 60 * 50)}
    assert {(verdict.voiced, verdict.level_dbfs) for verdict in verdicts} == {(False, QUIETEST_DBFS)}
    utterance = sounds.in_noise("hello", sounds.prompt("hello"), -60, lead_s=0.5)
    found = np.flatnonzero([detector.push(frame).voiced for frame in sounds.frames(utterance.pcm)])
    assert utterance.clip_start < (found[0] + 1) * 320 <= utterance.start + 16 * 160
    assert not caplog.records
