"""The stepper moves over what is settled and stops at what needs the world."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.dialogue.blocks import (
    ActionStep,
    Block,
    Branch,
    CollectStep,
    InstructionsStep,
    ListenStep,
    NoopStep,
    Paragraph,
    SetMemoryStep,
    Step,
)
from voice_agent.dialogue.conditions import parse_condition
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.stepper import MAX_STEPS_PER_TURN, Budget, Cursor, StepBudgetExceeded, done, plan

NAME = Field("s", "name", "text")


def run(
    block: Block, memory: dict[str, Any], turn: int = 1, budget: Budget | None = None
) -> tuple[Step | None, Cursor]:
    cursor = Cursor(block)
    return plan(cursor, lambda namespace, entry: memory.get(entry), turn, budget or Budget()), cursor


def test_the_first_branch_that_holds_is_taken() -> None:
    branches = (Branch("b", parse_condition("session.s.x")), Branch("c"))
    block = Block("m", (NoopStep(id="a", line=1, next=branches), *(ActionStep(id=i, line=1, response=i) for i in "bc")))
    assert getattr(run(block, {"x": 1})[0], "id", None) == "b"
    assert getattr(run(block, {})[0], "id", None) == "c"


def test_no_branch_that_holds_ends_the_block() -> None:
    branch = (Branch("b", parse_condition("session.s.x")),)
    block = Block("m", (NoopStep(id="a", line=1, next=branch), ActionStep(id="b", line=1, response="utter_b")))
    assert run(block, {})[0] is None


def test_a_filled_collect_is_passed_over() -> None:
    block = Block("m", (CollectStep(id="a", line=1, field=NAME), ActionStep(id="b", line=1, response="utter_b")))
    assert getattr(run(block, {})[0], "id", None) == "a"
    assert getattr(run(block, {"name": "Ann"})[0], "id", None) == "b"


def test_instructions_whose_condition_already_holds_are_passed_over() -> None:
    step = InstructionsStep(
        id="a", line=1, instructions=(Paragraph("Talk."),), complete_when=parse_condition("session.s.ok")
    )
    assert run(Block("m", (step,)), {"ok": True})[0] is None
    assert run(Block("m", (step,)), {})[0] is step


def test_a_listen_step_waits_for_the_turn_after_it_was_reached() -> None:
    block = Block("m", (ListenStep(id="a", line=1), ActionStep(id="b", line=1, response="utter_b")))
    step, cursor = run(block, {})
    assert isinstance(step, ListenStep)
    cursor.since = 1
    assert plan(cursor, lambda n, e: None, 1, Budget()) is step
    assert isinstance(plan(cursor, lambda n, e: None, 2, Budget()), ActionStep)


def test_a_circle_without_a_wait_is_stopped_by_the_budget() -> None:
    block = Block("m", (NoopStep(id="a", line=1, next=(Branch("b"),)), NoopStep(id="b", line=1, next=(Branch("a"),))))
    with pytest.raises(StepBudgetExceeded, match="'m'"):
        run(block, {})


# --- random graphs -----------------------------------------------------------------------------

_CONDITIONS = [None, "session.s.x", "not session.s.x", "session.s.y == 'a'", "session.s.name"]


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    size = draw(st.integers(1, 8))
    ids = [f"s{i}" for i in range(size)]
    steps: list[Step] = []
    for id in ids:
        targets = draw(st.lists(st.sampled_from([*ids, "END"]), max_size=3))
        conditions = draw(st.lists(st.sampled_from(_CONDITIONS), min_size=len(targets), max_size=len(targets)))
        branches = tuple(
            Branch(then, parse_condition(text) if text else None)
            for then, text in zip(targets, conditions, strict=True)
        )
        kind = draw(st.sampled_from(["noop", "action", "collect", "listen", "set", "instructions"]))
        common: dict[str, Any] = {"id": id, "line": 1, "next": branches}
        condition = draw(st.sampled_from([None, "session.s.x"]))
        steps.append(
            {
                "noop": lambda c=common: NoopStep(**c),
                "action": lambda c=common: ActionStep(response="utter_x", **c),
                "collect": lambda c=common: CollectStep(field=NAME, **c),
                "listen": lambda c=common: ListenStep(**c),
                "set": lambda c=common: SetMemoryStep(values=((NAME, "Ann"),), **c),
                "instructions": lambda c=common, w=condition: InstructionsStep(
                    instructions=(), complete_when=parse_condition(w) if w else None, **c
                ),
            }[kind]()
        )
    return Block("random", tuple(steps))


@settings(max_examples=300)
@given(blocks(), st.dictionaries(st.sampled_from(["x", "y", "name"]), st.sampled_from([None, "a", True]), max_size=3))
def test_a_random_block_ends_or_waits_within_its_budget_in_every_turn(block: Block, memory: dict[str, Any]) -> None:
    cursor = Cursor(block)
    for turn in range(1, 6):
        budget = Budget()
        taken = 0
        while True:
            taken += 1
            assert taken <= MAX_STEPS_PER_TURN + 1
            try:
                step = plan(cursor, lambda namespace, entry: memory.get(entry), turn, budget)
                if step is None:
                    return
                assert step in block.steps
                if isinstance(step, CollectStep | ListenStep | InstructionsStep):
                    cursor.since, cursor.answered = cursor.since or turn, True
                    break
                if isinstance(step, SetMemoryStep):
                    memory["name"] = "Ann"
                done(cursor, lambda namespace, entry: memory.get(entry), budget)
            except StepBudgetExceeded:
                return
