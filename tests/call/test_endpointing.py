"""How much silence ends an utterance depends on how its words end."""

from __future__ import annotations

import pytest

from voice_agent.call.endpointing import Endpointing
from voice_agent.config import TurnTaking
from voice_agent.dialogue.reply import ExpectedAnswer

ENDPOINTING = Endpointing(TurnTaking())


@pytest.mark.parametrize("text", ["What is my balance?", "I want to pay my bill.", "Yes.", "Stop!", "Thank you."])
def test_a_complete_sentence_ends_soon(text: str) -> None:
    assert ENDPOINTING.required_silence_ms(text) == 300


@pytest.mark.parametrize(
    "text",
    [
        "I'd like to pay my bill,",
        "I want to pay my bill and",
        "I want to pay my bill and.",
        "It was on, um.",
        "My number is.",
        "My account number is 427",
        "It's 555-1234.",
        "4 2 7",
        "I was thinking...",
        "Can you.",
    ],
)
def test_an_utterance_that_promises_more_is_waited_for(text: str) -> None:
    assert ENDPOINTING.required_silence_ms(text) == 1200


def test_an_unknown_transcript_is_waited_for() -> None:
    assert ENDPOINTING.required_silence_ms(None) == 1200


def test_words_that_promise_nothing_lie_between() -> None:
    assert ENDPOINTING.required_silence_ms("my balance") == 600


@pytest.mark.parametrize("text", ["Two.", "Line 2.", "At 5.", "The second one?", "What is it about?"])
def test_a_short_number_or_question_is_complete(text: str) -> None:
    assert ENDPOINTING.required_silence_ms(text) == 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My number is one two three four five six.", ExpectedAnswer("digits", length=6)),
        ("1 2 3, 4 5 6,", ExpectedAnswer("digits", length=6)),
        ("yes", ExpectedAnswer("yes_no")),
        ("the third of March", ExpectedAnswer("date")),
        ("router", ExpectedAnswer("choice", choices=("router", "cabling"))),
        ("about 4000", ExpectedAnswer("number")),
    ],
)
def test_a_whole_answer_to_the_question_ends_soon(text: str, expected: ExpectedAnswer) -> None:
    assert ENDPOINTING.required_silence_ms(text, expected) == 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two three.", ExpectedAnswer("digits", length=6)),
        ("One.", ExpectedAnswer("digits")),
        ("One two three four five six.", None),
        ("In March.", ExpectedAnswer("date")),
        ("Yes, but", ExpectedAnswer("yes_no")),
        ("The router and", ExpectedAnswer("choice", choices=("router", "cabling"))),
    ],
)
def test_an_answer_that_is_not_whole_is_waited_for(text: str, expected: ExpectedAnswer | None) -> None:
    assert ENDPOINTING.required_silence_ms(text, expected) == 1200
