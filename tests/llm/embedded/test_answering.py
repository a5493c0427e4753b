"""What callers say when they are asked something. Real encoder, fixed date (a Tuesday)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from tests.support.model_requests import (
    CANCEL,
    CONFIRM,
    DENY,
    HANG_UP,
    LISTEN,
    SEARCH,
    agent,
    caller,
    ran,
    request,
    set_fields,
    start_skill,
)
from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.minilm import MiniLm
from voice_agent.llm.embedded.moves import Decision
from voice_agent.llm.embedded.policy import decide
from voice_agent.llm.protocol import FieldCard, Message, ModelRequest, SkillCard

pytestmark = pytest.mark.models

Decide = Callable[[ModelRequest], Decision]
DAY = FieldCard("visit_date", "text", "Day of the visit")
PART = FieldCard("part_of_day", "categorical", "Part of the day", ("morning", "afternoon"))
AMOUNT = FieldCard("amount", "text", "Amount to pay, in dollars")
FULL = FieldCard("in_full", "bool", "Whether the caller pays all of it")
NUMBER = FieldCard("account_number", "text", "Six-digit account number")
PHONE = FieldCard("phone_number", "text", "Phone number")
RATING = FieldCard("rating", "int", "How satisfied the caller is, from 1 to 5")
TOOLS = [start_skill(), set_fields(DAY, PART, AMOUNT, FULL, NUMBER, PHONE, RATING), CANCEL, SEARCH, LISTEN, HANG_UP]


@pytest.fixture
def choose(encoder: MiniLm) -> Decide:
    return lambda asked: decide(asked, encoder.similarities, date(2026, 12, 1))


def asking(
    card: FieldCard, *others: FieldCard, said: str, question: str = "Well?", skill: str = "work"
) -> ModelRequest:
    asked = FieldCard(card.name, card.type, card.description, card.choices, asked=True)
    return request(agent("Well?"), caller(said), tools=TOOLS, active_skill=skill, fields=(asked, *others))


def called(decision: Decision) -> list[tuple[str, dict[str, Any]]]:
    return [(name, dict(arguments)) for name, arguments in decision.calls]


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("Friday. Actually no, Tuesday.", "2026-12-08"),
        ("on the fifth, no, the sixth", "2026-12-06"),
        ("not Friday but Saturday", "2026-12-05"),
        ("Could you come on Friday?", "2026-12-04"),
        ("How about Saturday?", "2026-12-05"),
    ],
)
def test_the_last_word_of_a_caller_who_corrects_themselves_counts(choose: Decide, said: str, day: str) -> None:
    assert called(choose(asking(DAY, said=said))) == [("set_fields", {"visit_date": day})]


def test_a_question_with_a_day_in_it_is_no_answer(choose: Decide) -> None:
    decision = choose(asking(DAY, said="When are you open on Saturday?"))
    assert [name for name, _ in decision.calls] == ["search_knowledge"]


def test_another_field_named_in_place_of_the_answer_is_taken_up(choose: Decide) -> None:
    decision = choose(asking(PART, DAY, said="Actually, could we do Thursday instead?"))
    assert called(decision) == [("set_fields", {"visit_date": "2026-12-03"})]


def test_a_day_is_not_bent_into_a_part_of_the_day(choose: Decide) -> None:
    assert called(choose(asking(PART, DAY, said="Sunday"))) == [("set_fields", {"visit_date": "2026-12-06"})]


def test_a_part_of_a_bill_in_place_of_a_yes_means_no(choose: Decide) -> None:
    decision = choose(asking(FULL, AMOUNT, said="just twenty dollars"))
    assert called(decision) == [("set_fields", {"amount": "20.00", "in_full": False})]


def test_digits_are_one_number_only(choose: Decide) -> None:
    assert called(choose(asking(NUMBER, PHONE, said="427913"))) == [("set_fields", {"account_number": "427913"})]


def test_half_a_number_is_said_back_and_the_rest_asked_for(choose: Decide) -> None:
    decision = choose(asking(NUMBER, said="four two seven"))
    assert (decision.text, decision.calls) == ("I have 4 2 7. What comes next?", ())
    asked = FieldCard(NUMBER.name, "text", NUMBER.description, asked=True)
    talk = [agent("Your number?"), caller("four two seven"), agent(decision.text), caller("nine one three")]
    decision = choose(request(*talk, tools=TOOLS, active_skill="work", fields=(asked,)))
    assert called(decision) == [("set_fields", {"account_number": "427913"})]


def test_who_begins_the_number_anew_is_not_held_to_the_first_half(choose: Decide) -> None:
    asked = FieldCard(NUMBER.name, "text", NUMBER.description, asked=True)
    talk = [agent("Your number?"), caller("1 2 3 4"), agent(phrases.and_then("1234")), caller("no, 123456")]
    decision = choose(request(*talk, tools=TOOLS, active_skill="work", fields=(asked,)))
    assert called(decision) == [("set_fields", {"account_number": "123456"})]


@pytest.mark.parametrize("said", ["I don't know it", "I forgot", "no idea"])
def test_who_is_at_a_loss_is_told_where_to_look(choose: Decide, said: str) -> None:
    assert called(choose(asking(NUMBER, said=said))) == [
        ("search_knowledge", {"query": "Where do I find my account number?"})
    ]


@pytest.mark.parametrize("said", ["yes that's right", "no", "okay"])
def test_a_bare_yes_or_no_starts_nothing(choose: Decide, said: str) -> None:
    goodbye = (SkillCard("say_goodbye", "The caller is done.", ("That is everything", "No, that is all")),)
    asked = FieldCard(PART.name, PART.type, PART.description, PART.choices, asked=True)
    talk = [agent("Morning or afternoon?"), caller(said)]
    tools = [start_skill(goodbye), *TOOLS[1:]]
    decision = choose(request(*talk, tools=tools, skills=goodbye, active_skill="work", fields=(asked,)))
    assert "start_skill" not in {name for name, _ in decision.calls}


def test_a_question_nobody_manages_to_answer_is_given_up(choose: Decide) -> None:
    talk: list[Message] = []
    for fruit in ("banana", "mango", "kiwi", "plum"):
        talk += [agent("Morning or afternoon?"), caller(fruit)]
    asked = FieldCard(PART.name, PART.type, PART.description, PART.choices, asked=True)
    decision = choose(request(*talk, tools=TOOLS, active_skill="work", fields=(asked,)))
    assert (decision.text, called(decision)) == (phrases.GIVEN_UP, [("cancel_skill", {})])


def held(said: str, **arguments: Any) -> ModelRequest:
    talk = [*ran("book", arguments, {"held": "Not executed."}), agent("Is that right?"), caller(said)]
    return request(
        *talk, tools=[*TOOLS, CONFIRM, DENY], active_skill="work", fields=(DAY, PART, AMOUNT), confirming=True
    )


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("yes", [("confirm", {})]),
        ("Yes, Tuesday in the morning is right.", [("confirm", {})]),
        ("no", [("deny", {})]),
        ("no, make it the afternoon", [("set_fields", {"part_of_day": "afternoon"})]),
        ("no, on Wednesday", [("set_fields", {"visit_date": "2026-12-02"})]),
        ("yes, but Thursday", [("set_fields", {"visit_date": "2026-12-03"})]),
    ],
)
def test_other_values_in_answer_to_a_confirmation_are_taken_up(choose: Decide, said: str, calls: list[Any]) -> None:
    assert called(choose(held(said, visit_date="2026-12-08", part_of_day="morning"))) == calls


def test_a_value_given_after_a_no_is_taken_up(choose: Decide) -> None:
    talk = [agent("All right. What amount would you like to pay instead?"), caller("actually yes, make it thirty")]
    decision = choose(request(*talk, tools=TOOLS, active_skill="work", fields=(DAY, AMOUNT)))
    assert called(decision) == [("set_fields", {"amount": "30.00"})]


@pytest.mark.parametrize("said", ["bye", "no thanks", "no"])
def test_nobody_has_to_answer_a_survey(choose: Decide, said: str) -> None:
    assert called(choose(asking(RATING, said=said, skill="default_customer_satisfaction"))) == [("hangup", {})]


def test_a_number_nobody_asked_for_is_no_question_about_numbers(choose: Decide) -> None:
    decision = choose(request(caller("My account number is 427-913."), tools=TOOLS))
    assert (decision.text, decision.calls) == (phrases.WHAT_ABOUT, ())


def test_a_question_that_leans_on_the_one_before_is_looked_up_whole(choose: Decide) -> None:
    talk = [caller("when are your shops open on Saturday"), agent("From ten to four."), caller("and on Sunday?")]
    assert called(choose(request(*talk, tools=[SEARCH, LISTEN]))) == [
        ("search_knowledge", {"query": "when are your shops open on Saturday and on Sunday?"})
    ]


def test_a_synonym_in_the_description_names_a_choice(choose: Decide) -> None:
    about = "Which service fails, of internet (wifi, connection) and phone (line, dial tone)"
    service = FieldCard("service", "categorical", about, ("internet", "phone"), asked=True)
    asked = request(agent("Which?"), caller("there is no dial tone"), tools=[set_fields(service)], fields=(service,))
    assert called(choose(asked)) == [("set_fields", {"service": "phone"})]


def test_after_a_side_question_the_whole_confirmation_is_asked_again(choose: Decide) -> None:
    hours = {"passages": [{"title": "Hours", "text": "We are closed on Sunday."}]}
    talk = [
        *ran("pay", {"amount": "42.50"}, {"held": "Not executed."}),
        agent("Thank you. I will charge $42.50 to your card. Is that right?"),
        caller("are you closed on Sunday?"),
        *ran("search_knowledge", {"query": "closed on Sunday"}, hours),
    ]
    decision = choose(request(*talk, tools=[*TOOLS, CONFIRM, DENY], confirming=True))
    assert decision.text == "We are closed on Sunday. I will charge $42.50 to your card. Is that right?"
