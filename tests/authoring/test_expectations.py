"""Matching, without playing anything."""

from __future__ import annotations

from typing import Any

import pytest

from voice_agent.authoring.expectation_file import Expectation, Never
from voice_agent.authoring.expectations import ToolRun, TurnFacts, check, check_never, same

GREETED = TurnFacts(messages=[("Good morning.", "utter_greet"), ("It’s  five\npounds.", None)])


def holds(facts: TurnFacts, **expected: Any) -> bool:
    return not check(Expectation.model_validate(expected), facts)


@pytest.mark.parametrize(
    "said",
    [
        "GOOD morning",
        "it's five pounds",
        {"equals": "It's five pounds."},
        {"equals": "Good morning. It's five pounds."},
        {"matches": r"\bfive\b"},
        {"response": "utter_greet"},
        [{"response": "utter_greet"}, "five"],
        ["good", "morning", "five"],
    ],
)
def test_what_was_said_fits(said: Any) -> None:
    assert holds(GREETED, said=said)


@pytest.mark.parametrize(
    "said",
    [
        "evening",
        {"equals": "Good"},
        {"matches": "^five"},
        {"response": "utter_bye"},
        ["five", {"response": "utter_greet"}],
    ],
)
def test_what_was_not_said_or_in_another_order_does_not_fit(said: Any) -> None:
    assert not holds(GREETED, said=said)


@pytest.mark.parametrize(
    ("expected", "actual", "fits"),
    [
        (5, 5, True),
        (5, "5", True),
        ("5", 5, True),
        (5.0, 5, True),
        (True, True, True),
        (True, 1, False),
        (1, True, False),
        (None, None, True),
        (None, 0, False),
        ("", None, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "c": 3}, {"a": 1}, False),
        ([1, 2], [1, 2], True),
        ([1], [1, 2], False),
        ({"contains": "or"}, "Word", True),
        ({"matches": r"^\d+$"}, 42, True),
        ({"equals": "a  b"}, "a b", True),
        ({"one_of": [1, 2]}, "2", True),
        ({"one_of": [1, 2]}, 3, False),
        ({"set": True}, 0, True),
        ({"set": True}, None, False),
        ({"set": False}, None, True),
        ({"contains": "x"}, None, False),
        ({}, {"anything": 1}, True),
        ({}, "text", False),
    ],
)
def test_values_compare_as_a_reader_of_yaml_expects(expected: Any, actual: Any, fits: bool) -> None:
    assert same(expected, actual) is fits


def test_a_run_is_found_by_name_arguments_result_and_outcome() -> None:
    facts = TurnFacts(
        runs=[ToolRun("pay", {"bill": "7", "by": "card"}, {"ok": True}, True), ToolRun("pay", {}, {}, False)]
    )
    assert holds(facts, ran="pay")
    assert holds(facts, ran={"pay": {"bill": 7}})
    assert holds(facts, ran={"tool": "pay", "failed": True, "times": 1})
    assert holds(facts, ran=[{"tool": "pay", "result": {"ok": True}}, {"tool": "pay", "times": 2}])
    assert holds(facts, ran={"tool": "refund", "times": 0})
    assert not holds(facts, ran={"pay": {"bill": 8}})
    assert not holds(facts, ran=["pay", "refund"])
    assert not holds(facts, ran={"pay": {}, "refund": None})


def test_never_looks_at_words_responses_and_runs() -> None:
    facts = TurnFacts(messages=GREETED.messages, runs=[ToolRun("pay", {"bill": 7}, {}, True)])
    never = Never.model_validate({"said": ["five", "ten"], "ran": [{"pay": {"bill": 7}}, {"pay": {"bill": 8}}]})
    assert [m.key for m in check_never(never, facts)] == [("said", 0), ("ran", 0)]


def test_every_part_that_fails_is_reported() -> None:
    expected = Expectation.model_validate(
        {
            "said": ["a", "b"],
            "ran": "x",
            "memory": {"y": 1},
            "skill": {"active": "s", "completed": "t"},
            "hung_up": True,
        }
    )
    keys = [m.key for m in check(expected, TurnFacts())]
    assert keys == [
        ("said", 0), ("said", 1), ("ran", 0), ("memory", "y"),
        ("skill", "active"), ("skill", "completed"), ("hung_up",),
    ]  # fmt: skip
