from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.repetition import collapse, find_loop, is_looping, is_too_fast, words_of


@pytest.mark.parametrize(
    "text",
    [
        "Yes. Yes. Yes. Yes.",
        "I said thank you thank you thank you",
        "Please hold while we try. Please hold while we try. Please hold",
        "I'm sorry. I'm sorry. I'm sorry. I'm sorry.",
    ],
)
def test_a_caught_decoder_is_recognised(text: str) -> None:
    assert is_looping(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No, no, no.",
        "Bye bye.",
        "thank you, thank you",
        "five five five oh one two",
        "Press 1 for sales, press 2 for support, press 3 for all else.",
        "It is what it is and that is that.",
    ],
)
def test_what_people_say_twice_is_no_loop(text: str) -> None:
    assert not is_looping(text)


def test_the_loop_is_located_by_its_shortest_period() -> None:
    assert find_loop(words_of("well yes yes yes yes yes")) == (1, 1)
    assert find_loop(words_of("so hold the line hold the line hold the line")) == (1, 3)


def test_a_loop_collapses_to_its_first_occurrence() -> None:
    assert collapse("Well, yes. Yes. Yes. Yes. Yes.") == "Well, yes."
    assert collapse("Please hold the line. Please hold the line. Please") == "Please hold the line."
    assert collapse("No, no, no.") == "No, no, no."


def test_more_words_than_can_be_said_are_too_fast() -> None:
    assert is_too_fast("I'm going to put the oil in the pan and then some", 0.4)
    assert not is_too_fast("I'm going to put the oil in the pan", 2.0)
    assert not is_too_fast("Stop it now", 0.3)


words = st.lists(st.sampled_from(["yes", "no", "hold", "the", "line"]), max_size=30)


@given(words)
def test_collapsing_never_adds_words_and_keeps_the_beginning(said: list[str]) -> None:
    kept = words_of(collapse(" ".join(said)))
    assert kept == said[: len(kept)]


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True), st.integers(4, 8))
def test_any_phrase_said_four_times_is_a_loop(phrase: list[str], times: int) -> None:
    assert find_loop(phrase * times) == (0, len(phrase))
