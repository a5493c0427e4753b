"""How much silence ends an utterance depends on how its words end."""

from __future__ import annotations

import pytest

from voice_agent.call.endpointing import Endpointing
from voice_agent.config import TurnTaking

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
