"""Numbers of a known length, said in one breath or in several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.counted_digits import counted, length_of, part, parts_before
from voice_agent.llm.protocol import FieldCard

ASK = "What is your six digit account number?"


@pytest.mark.parametrize(
    ("description", "length"),
    [("Six-digit account number", 6), ("The 10 digit phone number", 10), ("eight digits", 8), ("Account number", None)],
)
def test_the_description_says_how_many_digits_there_are(description: str, length: int | None) -> None:
    assert length_of(FieldCard("account_number", "text", description)) == length


@pytest.mark.parametrize(
    "heard",
    ["427913", "427-913", "427 9 1 3", "42.7913", "4-2-7-9-1-3", "four two seven nine one three", "It's 427 913.",
     "4, 2, 7, 9, 1, 3, 4, 2, 7"],
)  # fmt: skip
def test_digits_are_read_however_they_were_grouped_or_echoed(heard: str) -> None:
    assert counted(heard, 6) == "427913"


@pytest.mark.parametrize("heard", ["4279", "42791345", "no", "", "in 2024 I paid 50 dollars"])
def test_what_has_another_length_is_no_such_number(heard: str) -> None:
    assert counted(heard, 6) is None


@pytest.mark.parametrize(
    ("heard", "found"), [("four two seven", "427"), ("1234", "1234"), ("427913", None), ("7", None)]
)
def test_fewer_digits_may_be_the_beginning(heard: str, found: str | None) -> None:
    assert part(heard, 6) == found


def test_the_parts_given_before_are_put_together_in_their_order() -> None:
    exchanges = [
        (ASK, "forty two"),
        (phrases.and_then("42"), "seven nine"),
        (phrases.and_then("4279"), "one three"),
    ]
    assert parts_before(exchanges) == "4279"


def test_what_was_said_to_another_question_is_no_part() -> None:
    assert parts_before([("How can I help?", "I have 2 questions"), (ASK, "427")]) == ""
    assert parts_before([]) == ""


@given(st.text(max_size=60), st.integers(3, 16))
def test_what_is_read_has_the_length_that_was_asked_for(text: str, length: int) -> None:
    found, begun = counted(text, length), part(text, length)
    assert found is None or len(found) == length
    assert begun is None or len(begun) < length
