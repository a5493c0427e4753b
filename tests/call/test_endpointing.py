"""How much silence ends an utterance depends on how its words end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.call.endpointing import Ending, Endpointing, ending
from voice_agent.config import TurnTaking
from voice_agent.dialogue.reply import ExpectedAnswer

ENDPOINTING = Endpointing(TurnTaking())


@pytest.mark.parametrize("text", ["What is my balance?", "I want to pay my bill.", "Yes.", "Stop!", "Thank you."])
def test_a_complete_sentence_ends_soon(text: str) -> None:
    assert ENDPOINTING.endpoint(text).turn_ms == 300


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
    assert ENDPOINTING.endpoint(text).turn_ms == 1200


def test_an_unknown_transcript_is_waited_for() -> None:
    assert ENDPOINTING.endpoint(None).turn_ms == 1200


def test_words_that_promise_nothing_lie_between() -> None:
    assert ENDPOINTING.endpoint("my balance").turn_ms == 600


@pytest.mark.parametrize("text", ["Two.", "Line 2.", "At 5.", "The second one?", "What is it about?"])
def test_a_short_number_or_question_is_complete(text: str) -> None:
    assert ENDPOINTING.endpoint(text).turn_ms == 300


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
    assert ENDPOINTING.endpoint(text, expected).turn_ms == 300


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
    assert ENDPOINTING.endpoint(text, expected).turn_ms == 1200


@pytest.mark.parametrize(
    "text",
    [
        "If it is not too late.",
        "When I switch it on.",
        "Could you tell me?",
        "Well, I would like.",
        "Can I book a table for um?",
        "I paid the bill, my number is.",
    ],
)
def test_a_full_stop_does_not_close_what_is_only_beginning(text: str) -> None:
    assert ending(text) is Ending.OPEN


@pytest.mark.parametrize(
    "text",
    [
        "I do not know where it is.",
        "That is what the money is for.",
        "I would like that.",
        "The light is on.",
        "I ordered it, but it never came. If that is possible.",
    ],
)
def test_a_sentence_may_end_with_a_small_word(text: str) -> None:
    assert ending(text) is Ending.CLOSED


@pytest.mark.parametrize("text", ["Yes.", "No, thank you.", "Thank you very much.", "Okay, bye.", "Please stop."])
def test_a_courtesy_is_over(text: str) -> None:
    assert ending(text) is Ending.SURE


def test_the_answer_to_a_statement_waits_for_a_second_half_and_that_to_a_question_does_not() -> None:
    statement = ENDPOINTING.endpoint("I would like to book a technician.")
    question = ENDPOINTING.endpoint("What is my balance?")
    assert (statement.turn_ms, statement.reply_ms) == (300, 700)
    assert (question.turn_ms, question.reply_ms) == (300, 300)


def test_a_stop_that_the_recogniser_doubts_is_waited_for() -> None:
    sure = ENDPOINTING.endpoint("I ordered a blue.", stop_probability=0.9)
    doubted = ENDPOINTING.endpoint("I ordered a blue.", stop_probability=0.3)
    assert doubted.turn_ms > sure.turn_ms
    assert doubted.reply_ms > sure.reply_ms


@given(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz 0123456789.,?!'-", max_size=60),
    st.sampled_from([None, *(ExpectedAnswer(kind) for kind in ("digits", "number", "date", "yes_no", "text"))]),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_every_endpoint_lies_within_the_configured_bounds(
    text: str, expected: ExpectedAnswer | None, stop: float | None
) -> None:
    endpoint = ENDPOINTING.endpoint(text, expected, stop)
    assert 300 <= endpoint.turn_ms <= endpoint.reply_ms <= 1200
