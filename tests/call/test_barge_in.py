"""Stage one pauses, stage two decides."""

from __future__ import annotations

import pytest

from voice_agent.call.barge_in import BargeIn, Decision, Words, weigh
from voice_agent.config import TurnTaking

OPTIONS = TurnTaking()


@pytest.mark.parametrize(
    ("voice_ms", "decision"),
    [(60, Decision.WAIT), (80, Decision.PAUSE), (499, Decision.PAUSE), (500, Decision.CONFIRM)],
)
def test_voice_pauses_soon_and_takes_the_floor_when_it_lasts(voice_ms: int, decision: Decision) -> None:
    assert BargeIn(OPTIONS).on_voice(voice_ms, words_pending=False) is decision


def test_voice_waits_a_little_for_words_that_are_being_recognised() -> None:
    assert BargeIn(OPTIONS).on_voice(600, words_pending=True) is Decision.PAUSE
    assert BargeIn(OPTIONS).on_voice(640, words_pending=True) is Decision.CONFIRM


def test_a_long_backchannel_is_no_interruption_by_its_length() -> None:
    barge_in = BargeIn(OPTIONS)
    assert barge_in.on_words("Mm-hmm.", 640) is Decision.RESUME
    assert barge_in.on_voice(700, words_pending=False) is Decision.WAIT
    assert barge_in.on_voice(1040, words_pending=False) is Decision.PAUSE
    assert barge_in.on_voice(1500, words_pending=False) is Decision.CONFIRM


def test_a_word_of_weight_after_a_backchannel_pauses_again_and_two_take_the_floor() -> None:
    barge_in = BargeIn(OPTIONS)
    assert barge_in.on_words("Yeah.", 140) is Decision.RESUME
    assert barge_in.on_voice(300, words_pending=True) is Decision.WAIT
    assert barge_in.on_words("Yeah, but", 340) is Decision.WAIT
    assert barge_in.on_voice(360, words_pending=False) is Decision.PAUSE
    assert barge_in.on_words("Yeah, but I want", 540) is Decision.CONFIRM


def test_words_that_the_recogniser_is_unsure_of_decide_nothing_unless_they_stop_or_are_hummed() -> None:
    assert BargeIn(OPTIONS).on_words("Do it.", 140, certainty=-1.3) is Decision.WAIT
    assert BargeIn(OPTIONS).on_words("Oh.", 140, certainty=-1.2) is Decision.WAIT
    assert BargeIn(OPTIONS).on_words("Stop.", 140, certainty=-1.1) is Decision.CONFIRM
    assert BargeIn(OPTIONS).on_words("Uh.", 140, certainty=-1.1) is Decision.RESUME


@pytest.mark.parametrize("text", ["Mm-hm.", "Yeah.", "Okay.", "uh-huh", "Right, okay.", "I see.", "Yeah, got it."])
def test_backchannels(text: str) -> None:
    assert weigh(text, 2) is Words.BACKCHANNEL


@pytest.mark.parametrize("text", ["Stop.", "No.", "Wait", "Hold on!", "okay stop", "What about tomorrow?"])
def test_interruptions(text: str) -> None:
    assert weigh(text, 2) is Words.INTERRUPTION


@pytest.mark.parametrize(
    ("text", "expected"), [("Tuesday.", Words.FEW), ("yeah Tuesday", Words.FEW), ("…", Words.NONE)]
)
def test_one_word_of_weight_is_too_few_to_interrupt(text: str, expected: Words) -> None:
    assert weigh(text, 2) is expected


def test_silence_resumes_unless_words_are_on_their_way() -> None:
    barge_in = BargeIn(OPTIONS)
    assert barge_in.on_silence(380, words_pending=False) is Decision.WAIT
    assert barge_in.on_silence(400, words_pending=False) is Decision.RESUME
    assert barge_in.on_silence(1000, words_pending=True) is Decision.WAIT
    assert barge_in.on_silence(1200, words_pending=True) is Decision.RESUME
