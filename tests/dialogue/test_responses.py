"""Responses choose their wording in order and fill placeholders in one pass."""

from __future__ import annotations

from typing import Any

import pytest

from voice_agent.dialogue.conditions import Reference, parse_condition
from voice_agent.dialogue.responses import Response, Responses, Variant, parse_template

VALUES: dict[Any, Any] = {
    "name": "Ann",
    Reference("bill", "amount"): 12.5,
    "trap": "{name} {session.bill.amount}",
    "flag": True,
    "items": ["a", "b"],
}


def render(text: str) -> str:
    return parse_template(text).render(VALUES.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {name}.", "Hello Ann."),
        ("{session.bill.amount} euros", "12.5 euros"),
        ("{unset}!", "!"),
        ("{flag}", "yes"),
        ("{items}", "a, b"),
        ("braces {} { } {1} {a b} {name", "braces {} { } {1} {a b} {name"),
        ("{name}{name}", "AnnAnn"),
        ("{name.__class__}", "{name.__class__}"),
        ("{name!r:>20}", "{name!r:>20}"),
    ],
)
def test_placeholders_are_filled_and_everything_else_is_text(text: str, expected: str) -> None:
    assert render(text) == expected


def test_a_filled_value_is_never_a_template() -> None:
    assert render("He said {trap}") == "He said {name} {session.bill.amount}"


def variant(text: str, condition: str | None = None, channel: str | None = None) -> Variant:
    return Variant(parse_template(text), parse_condition(condition) if condition else None, channel)


def chosen(response: Response, channel: str | None = None, **memory: Any) -> str | None:
    found = response.choose(lambda namespace, entry: memory.get(entry), channel)
    return None if found is None else found.template.source


def test_the_first_condition_that_holds_wins_whatever_its_place() -> None:
    response = Response("utter_x", (variant("default"), variant("a", "session.s.a"), variant("b", "session.s.b")))
    assert chosen(response) == "default"
    assert chosen(response, a=1, b=1) == "a"
    assert chosen(response, b=1) == "b"


def test_without_conditions_the_first_wins_not_a_random_one() -> None:
    response = Response("utter_x", (variant("one"), variant("two")))
    assert {chosen(response) for _ in range(20)} == {"one"}


def test_nothing_is_chosen_when_no_condition_holds_and_there_is_no_default() -> None:
    assert chosen(Response("utter_x", (variant("a", "session.s.a"),))) is None


def test_a_variant_whose_condition_cannot_be_evaluated_is_skipped() -> None:
    response = Response("utter_x", (variant("a", "session.s.n > 3"), variant("default")))
    assert chosen(response) == "default"


def test_a_variant_for_the_callers_channel_comes_first_and_others_never() -> None:
    response = Response("utter_x", (variant("general"), variant("spoken", channel="websocket")))
    assert (chosen(response, "websocket"), chosen(response, "text")) == ("spoken", "general")


def test_a_skills_wording_wins_inside_it_and_the_roots_replaces_the_packaged() -> None:
    def one(text: str) -> dict[str, Response]:
        return {"utter_x": Response("utter_x", (variant(text),))}

    responses = Responses(one("packaged"), one("root"), {"s": one("skill")})
    found = [responses.find("utter_x", name) for name in ("s", "other", None)]
    assert [r.variants[0].template.source for r in found if r] == ["skill", "root", "root"]


def test_constant_texts_are_listed_once_with_the_greeting_first() -> None:
    packaged = {"utter_a": Response("utter_a", (variant("same"), variant("Hello {name}")))}
    skill = {"utter_greet": Response("utter_greet", (variant("Welcome"), variant("same")))}
    texts = Responses(packaged, {}, {"s": skill}).constant_texts([("utter_greet", "s")])
    assert texts == ("Welcome", "same")
