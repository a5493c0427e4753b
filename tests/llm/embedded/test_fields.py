"""Typed values out of a caller's words."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.similarity import shared_words
from voice_agent.llm.embedded.fields import Reader
from voice_agent.llm.embedded.questions import Kind, is_question, kind_of, question
from voice_agent.llm.protocol import FieldCard

READER = Reader(date(2026, 12, 1), shared_words)
LINE = FieldCard("connection", "categorical", "", ("internet", "phone_line", "mobile"))


@pytest.mark.parametrize(
    ("card", "said", "value"),
    [
        (FieldCard("account_number", "text"), "it's four two seven, nine one three", "427913"),
        (FieldCard("account_number", "int"), "4 2 7 9", 4279),
        (FieldCard("guests", "int"), "there will be three of us", 3),
        (FieldCard("guests", "int"), "at half past seven in the evening for four", 4),
        (FieldCard("opening_hour", "int"), "nine in the morning", 9),
        (FieldCard("weight", "float"), "two point five", 2.5),
        (FieldCard("amount", "float"), "forty two fifty", 42.5),
        (FieldCard("appointment_date", "text"), "next Friday please", "2026-12-11"),
        (FieldCard("date_of_birth", "text"), "the fifth of March nineteen eighty", "1980-03-05"),
        (FieldCard("incident_date", "text"), "on Friday", "2026-11-27"),
        (FieldCard("time", "text"), "half past three", "15:30"),
        (FieldCard("has_router", "bool"), "yes, I have one here", True),
        (FieldCard("has_router", "bool"), "I don't", False),
        (LINE, "it's the phone line", "phone_line"),
        (LINE, "my internett", "internet"),
        (LINE, "the second one", "phone_line"),
        (LINE, "not mobile, internet", "internet"),
        (FieldCard("size", "categorical", "", ("home", "home office")), "home office", "home office"),
        (FieldCard("agree", "categorical", "", ("yes", "no")), "yeah sure", "yes"),
        (FieldCard("name", "text"), "my name is anna maria schmidt and I have a problem", "Anna Maria Schmidt"),
        (FieldCard("first_name", "text"), "Anna", "Anna"),
        (FieldCard("email", "text"), "it's anna dot smith at example dot com", "anna.smith@example.com"),
        (FieldCard("problem", "text"), "um, my problem is the screen stays black", "the screen stays black"),
        (FieldCard("street", "text", "Street and house number?"), "I live in Mill Road 12", "Mill Road 12"),
        (FieldCard("toppings", "list"), "cheese, ham and olives", ["cheese", "ham", "olives"]),
    ],
)
def test_an_answer_to_the_question_for_a_field(card: FieldCard, said: str, value: Any) -> None:
    assert READER.asked(card, said) == value


def test_an_okay_that_repeats_the_question_answers_it() -> None:
    card = FieldCard("by_mail", "bool", "The way the bill is sent")
    assert READER.asked(card, "okay, post it to me") is None
    assert READER.asked(card, "okay, post it to me", question="Shall I post it?") is True


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (FieldCard("account_number", "text"), "I don't have it here"),
        (FieldCard("guests", "int"), "what do you mean"),
        (FieldCard("guests", "int"), "seven in the evening"),
        (FieldCard("guests", "int"), "at 7 p.m."),
        (FieldCard("date", "text"), "whenever you like"),
        (FieldCard("has_router", "bool"), "what is a router"),
        (LINE, "internet or mobile"),
        (LINE, "the washing machine"),
        (FieldCard("name", "text"), "what do you need my name for?"),
        (FieldCard("name", "text"), "hello"),
        (FieldCard("email", "text"), "I have none"),
        (FieldCard("problem", "text"), "  "),
    ],
)
def test_what_answers_no_question_fills_no_field(card: FieldCard, said: str) -> None:
    assert READER.asked(card, said) is None


def test_fields_mentioned_by_the_way_are_taken_where_the_words_leave_no_doubt() -> None:
    cards = [
        LINE,
        FieldCard("since", "text", "Date since when"),
        FieldCard("account_number", "text"),
        FieldCard("amount", "float"),
        FieldCard("people", "int", "Number of people"),
        FieldCard("caller_name", "text"),
        FieldCard("wants_callback", "bool"),
        FieldCard("note", "text"),
    ]
    said = "Hi, this is Anna, my internet is down, account 427913, it costs me $20 for 3 people, yes really"
    assert READER.mentioned(cards, said) == {
        "connection": "internet",
        "account_number": "427913",
        "amount": 20.0,
        "people": 3,
        "caller_name": "Anna",
    }


def test_two_fields_of_one_kind_compete_by_their_names() -> None:
    cards = [FieldCard("departure_date", "text"), FieldCard("return_date", "text")]
    assert READER.mentioned(cards, "the return is on Friday") == {"return_date": "2026-12-04"}
    assert READER.mentioned(cards, "on Friday") == {}


@pytest.mark.parametrize(
    ("card", "kind"),
    [
        (FieldCard("x", "text", "Date of birth"), Kind.DATE),
        (FieldCard("customer_id", "text"), Kind.DIGITS),
        (FieldCard("price", "float"), Kind.MONEY),
        (FieldCard("update", "text"), Kind.TEXT),
        (FieldCard("x", "any"), Kind.TEXT),
        (FieldCard("username", "text"), Kind.TEXT),
    ],
)
def test_the_kind_of_a_field_follows_its_type_then_its_name_and_description(card: FieldCard, kind: Kind) -> None:
    assert kind_of(card) is kind


def test_a_question_is_made_from_the_description_or_the_name() -> None:
    assert question(FieldCard("x", "text", "Which street do you live in?")) == "Which street do you live in?"
    assert question(FieldCard("x", "text", "The account number.")) == "What is the account number?"
    assert question(FieldCard("order_id", "text")) == "What is the order id?"
    assert question(LINE) == "What is the connection? You can say internet, phone line or mobile."
    assert question(FieldCard("urgent", "bool"), hint=True) == "Is it urgent? Please say yes or no."


@pytest.mark.parametrize(
    ("said", "asks"), [("when do you open", True), ("Anna?", True), ("um, can I pay", True), ("I see", False)]
)
def test_a_question_is_told_from_an_answer(said: str, asks: bool) -> None:
    assert is_question(said) is asks


@given(st.sampled_from(list(Kind)), st.text(max_size=200))
def test_no_text_breaks_a_reader(kind: Kind, text: str) -> None:
    types = {Kind.BOOL: "bool", Kind.INT: "int", Kind.NUMBER: "float", Kind.LIST: "list", Kind.CHOICE: "categorical"}
    choices = ("red", "green") if kind is Kind.CHOICE else ()
    card = FieldCard(kind.value, types.get(kind, "text"), "", choices)
    READER.asked(card, text)
    READER.mentioned([card], text)
