"""Whether an answer is whole depends on what was asked."""

from __future__ import annotations

import pytest

from voice_agent.call.answers import Wholeness, wholeness
from voice_agent.dialogue.reply import ExpectedAnswer

SIX = ExpectedAnswer("digits", length=6)
DIGITS = ExpectedAnswer("digits")
DATE = ExpectedAnswer("date")
YES_NO = ExpectedAnswer("yes_no")
CHOICE = ExpectedAnswer("choice", choices=("router", "new connection"))


@pytest.mark.parametrize(
    ("text", "expected", "known"),
    [
        ("My number is one two three four five six.", SIX, Wholeness.WHOLE),
        ("123456, please", SIX, Wholeness.WHOLE),
        ("one two three", SIX, Wholeness.OPEN),
        ("It starts with 4", SIX, Wholeness.OPEN),
        ("I don't have it here.", SIX, Wholeness.UNKNOWN),
        ("one two three four five six", DIGITS, Wholeness.OPEN),
        ("the third of March", DATE, Wholeness.WHOLE),
        ("December 5th", DATE, Wholeness.WHOLE),
        ("next Tuesday", DATE, Wholeness.WHOLE),
        ("5/12/2026", DATE, Wholeness.WHOLE),
        ("on the third", DATE, Wholeness.OPEN),
        ("In March.", DATE, Wholeness.OPEN),
        ("as soon as possible", DATE, Wholeness.UNKNOWN),
        ("yes", YES_NO, Wholeness.WHOLE),
        ("No thanks.", YES_NO, Wholeness.WHOLE),
        ("how much is it", YES_NO, Wholeness.UNKNOWN),
        ("a new connection", CHOICE, Wholeness.WHOLE),
        ("a connection", CHOICE, Wholeness.UNKNOWN),
        ("about 4000", ExpectedAnswer("number"), Wholeness.WHOLE),
        ("four two seven", None, Wholeness.OPEN),
        ("two", None, Wholeness.UNKNOWN),
        ("yes", None, Wholeness.UNKNOWN),
        ("123456", ExpectedAnswer("text"), Wholeness.OPEN),
    ],
)
def test_an_answer_is_judged_by_what_was_asked(text: str, expected: ExpectedAnswer | None, known: Wholeness) -> None:
    assert wholeness(text, expected) is known
