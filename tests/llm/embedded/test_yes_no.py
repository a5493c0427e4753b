"""Yes, no, or neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.llm.embedded.yes_no import affirms_by_repeating, plain_answer, polarity

QUESTION = ["Shall I transfer 50 euros to Anna?"]


@pytest.mark.parametrize(
    "said",
    [
        "yes",
        "Yeah.",
        "yes please",
        "sure, go ahead",
        "that's right",
        "yes, that's correct",
        "of course",
        "okay do it",
        "mm-hmm",
        "uh huh",
        "why not",
        "no problem",
        "I do",
        "please go ahead and do that",
        "yes, transfer the money to Anna",
        "go right ahead",
        "yes thank you very much",
    ],
)
def test_a_plain_yes(said: str) -> None:
    assert plain_answer(said, [*QUESTION, "money"]) is True


@pytest.mark.parametrize(
    "said",
    [
        "no",
        "no thanks",
        "nope",
        "not correct",
        "that's not right",
        "please don't",
        "don't do it",
        "I don't think so",
        "of course not",
        "no, I changed my mind",
        "stop",
        "cancel that",
        "not yet",
        "never mind",
    ],
)
def test_a_plain_no(said: str) -> None:
    assert plain_answer(said, QUESTION) is False


@pytest.mark.parametrize(
    "said",
    [
        "yes but Tuesday",
        "yes, make it 60",
        "yes and also order a pizza",
        "yes no wait",
        "no that's right",
        "I'm not sure",
        "hold on",
        "what?",
        "what is my balance",
        "I would like to know my balance",
        "okay but only if it is free",
        "the weather is nice",
        "",
    ],
)
def test_what_gives_no_permission(said: str) -> None:
    assert plain_answer(said, QUESTION) is not True


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("yes, I have one at home", True),
        ("no, we never had one", False),
        ("I don't", False),
        ("I haven't got one", False),
        ("I have", True),
        ("maybe", None),
        ("my internet is not working at all", None),
        ("the blue one is fine", None),
        ("it is blue", None),
    ],
)
def test_facts_may_come_with_more_words(said: str, verdict: bool | None) -> None:
    assert polarity(said) is verdict


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("okay", True),
        ("okay, then", True),
        ("okay, yes", True),
        ("okay do it", True),
        ("alright, I'd like that", True),
        ("okay, I'll take it", True),
        ("okay, the router at home", True),
        ("okay, no", False),
        ("alright, don't", False),
        ("no, okay", None),
        ("okay, tell me your opening hours", None),
        ("ok can I pay my bill", None),
        ("right, I need a technician", None),
        ("great, and my balance please", None),
        ("okay, what are your opening hours?", None),
        ("yes, tell me your opening hours", True),
    ],
)
def test_an_okay_before_another_request_only_takes_note(said: str, verdict: bool | None) -> None:
    assert polarity(said, "has a router at home") is verdict


@pytest.mark.parametrize(
    "said", ["my internet is not working at all", "the shop is never open", "which one is not right"]
)
def test_a_no_in_the_middle_of_a_sentence_is_no_answer(said: str) -> None:
    assert plain_answer(said, QUESTION) is None


@pytest.mark.parametrize(
    ("said", "asked", "affirms"),
    [
        ("All of it.", "Do you want to pay all of it?", True),
        ("pay all of it, please", "Do you want to pay all of it?", True),
        ("everything", "Do you want to pay all of it?", True),
        ("the full amount please", "Do you want to pay all of it?", True),
        ("all of it", "Shall I cancel everything?", True),
        ("everything", "Do you want a receipt?", False),
        ("red", "Is the light red?", True),
        ("half of it", "Do you want to pay all of it?", False),
        ("not all of it", "Do you want to pay all of it?", False),
        ("that is all", "Do you want to pay all of it?", False),
        ("it of all", "Do you want to pay all of it?", False),
        ("red", "Is the light red or green?", False),
        ("do you", "Do you want to pay all of it?", False),
        ("", "Do you want to pay all of it?", False),
        ("all of it", "", False),
    ],
)
def test_who_repeats_what_was_asked_says_yes(said: str, asked: str, affirms: bool) -> None:
    assert affirms_by_repeating(said, asked) is affirms


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    assert plain_answer(text) in (True, False, None)
