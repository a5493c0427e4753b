"""Arguments are checked before they are sent, by a schema that comes from outside and is not trusted."""

from __future__ import annotations

from typing import Any

import pytest

from voice_agent.dialogue.tools import ArgumentsRefused
from voice_agent.mcp.arguments import MAX_ARGUMENT_CHARS, checker

SCHEMA = {
    "type": "object",
    "properties": {"account": {"type": "string"}, "amount": {"type": "number", "minimum": 0}},
    "required": ["account"],
    "additionalProperties": False,
}


def test_what_fits_is_passed_on() -> None:
    assert checker(SCHEMA)({"account": "7", "amount": 1.5}) == {"account": "7", "amount": 1.5}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'account' is a required property"),
        ({"account": 7}, "account: 7 is not of type 'string'"),
        ({"account": "7", "amount": -1}, "amount: -1 is less than"),
        ({"account": "7", "other": 1}, "'other'"),
        ({"account": "x" * MAX_ARGUMENT_CHARS}, "too long"),
        ({"account": float("nan")}, "no JSON"),
        ({"account": object()}, "no JSON"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentsRefused, match=said.replace("(", "")):
        checker(SCHEMA)(arguments)


def test_a_schema_that_is_none_is_found_when_it_is_listed() -> None:
    with pytest.raises(ValueError, match="schema"):
        checker({"type": "no such type"})


def test_a_regular_expression_of_a_server_cannot_hold_the_service_up() -> None:
    evil = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert checker(evil)({"a": "a" * 60 + "!"})  # with its expression, that would take years


def test_a_field_called_pattern_is_a_field() -> None:
    check = checker({"type": "object", "properties": {"pattern": {"type": "integer"}}})
    with pytest.raises(ArgumentsRefused):
        check({"pattern": "x"})


def test_nothing_that_a_schema_refers_to_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any, **__: Any) -> None:
        pytest.fail("fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetch)
    monkeypatch.setattr("socket.create_connection", fetch)
    check = checker({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})
    with pytest.raises(ArgumentsRefused, match="broken"):
        check({"a": 1})


def test_definitions_that_refer_to_each_other_twice_cannot_hold_the_service_up() -> None:
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    check = checker({"type": "object", "$defs": {**twice, "d40": {}}, "allOf": [{"$ref": "#/$defs/d0"}]})
    for _ in range(2):
        with pytest.raises(ArgumentsRefused, match="refers to itself"):
            check({})
    fine = checker(
        {"type": "object", "$defs": {"n": {"type": "integer"}}, "additionalProperties": {"$ref": "#/$defs/n"}}
    )
    assert fine({"a": 1}) == {"a": 1}
    with pytest.raises(ArgumentsRefused, match="not of type"):
        fine({"a": "x"})
