"""Conditions decide over memory and never run code."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.dialogue.conditions import ConditionSyntaxError, Reference, parse_condition

MEMORY: dict[tuple[str, str], Any] = {
    ("project", "known"): True,
    ("billing", "amount"): 12.5,
    ("billing", "zero"): 0,
    ("billing", "plan"): "Car",
    ("billing", "flag"): False,
    ("billing", "empty"): "",
}


def read(namespace: str, entry: str) -> Any:
    return MEMORY.get((namespace, entry))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("session.project.known", True),
        ("session.project.unset", False),
        ("not session.project.unset", True),
        ("session.billing.amount > 10", True),
        ("1 < session.billing.amount < 12", False),
        ('session.billing.plan == "Car"', True),
        ("session.billing.plan == 'Home' or session.billing.plan == 'Car'", True),
        ("session.billing.zero", False),
        ("session.billing.zero != None", True),
        ("session.billing.zero is not None", True),
        ("session.billing.unset is None", True),
        ("session.billing.flag == False", True),
        ("session.billing.unset == False", False),
        ("session.billing.empty", False),
        ("(session.project.known and session.billing.zero) or session.billing.amount >= 12.5", True),
        ("session.billing.amount > -1", True),
        ("session.project.known and\n  session.billing.plan", True),
        ("True", True),
    ],
)
def test_a_condition_reads_memory(text: str, expected: bool) -> None:
    assert parse_condition(text).evaluate(read) is expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "session.project.known()",
        "open('x')",
        "session.project.known.__class__",
        "session.project",
        "known",
        "session.billing.plan in ['Car']",
        "session.billing.amount + 1 > 2",
        "lambda: 1",
        "[x for x in session.project.known]",
        "f'{session.project.known}'",
        "session.billing.plan[0] == 'C'",
        "(session.project.known := 1)",
        "true",
        "",
        "session.project.known and",
        "1 if session.project.known else 2",
        "b'x' == session.billing.plan",
        "x" * 3000,
        "(" * 500 + "1" + ")" * 500,
        "not " * 900 + "True",
    ],
)
def test_anything_outside_the_grammar_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ConditionSyntaxError):
        parse_condition(text)


def test_the_refusal_says_what_would_be_right() -> None:
    with pytest.raises(ConditionSyntaxError) as caught:
        parse_condition("amount > 3")
    assert "session.<skill id or project>.amount" in caught.value.remedy
    with pytest.raises(ConditionSyntaxError, match="Write True, not true"):
        parse_condition("session.project.known == true")


def test_references_are_known_before_anything_is_evaluated() -> None:
    condition = parse_condition("session.a.b and (session.c.d == 1 or session.a.b)")
    assert condition.references == (Reference("a", "b"), Reference("c", "d"))


def test_a_gate_that_cannot_be_evaluated_is_shut() -> None:
    condition = parse_condition("session.billing.unset > 1")
    with pytest.raises(TypeError):
        condition.evaluate(read)
    assert condition.holds(read) is False


@given(st.text(max_size=200))
def test_no_text_executes_code(text: str) -> None:
    touched: list[str] = []
    original = builtins.__import__

    def watch(name: str, *args: Any, **kwargs: Any) -> Any:
        touched.append(name)
        return original(name, *args, **kwargs)

    builtins.__import__ = watch
    try:
        condition = parse_condition(text)
    except ConditionSyntaxError:
        return
    finally:
        builtins.__import__ = original
    condition.holds(lambda namespace, entry: None)
    assert "os" not in touched


_calls = st.sampled_from(["boom()", "session.a.b()", "boom", "session.a.b.c", "getattr(session, 'a')", "session['a']"])


@given(_calls, st.sampled_from(["{}", "not {}", "{} and True", "True or {}", "1 < {}", "({})"]))
def test_no_call_hides_inside_a_larger_condition(call: str, frame: str) -> None:
    with pytest.raises(ConditionSyntaxError):
        parse_condition(frame.format(call))
