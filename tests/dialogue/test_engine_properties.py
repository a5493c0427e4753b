"""What holds for every block, every model and every instant of a cancellation."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import Caller, caller, cancel_after, skill
from tests.support.virtual_time import run_virtual
from voice_agent.diagnostics import ProjectError
from voice_agent.dialogue.blocks import ListenStep
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import SESSION_START, SILENCE, TurnStatus
from voice_agent.llm.protocol import ToolCall

# Without the phase that explains failures: it traces every line, and these examples are whole conversations.
RELAXED = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)

TOOLS = """
import asyncio
from pathlib import Path

from voice_agent.dialogue import tool, ToolContext, ToolResult

LOG = Path(__file__).parent / "effects.txt"

async def work(name, context, seconds):
    context.memory.set("last", name)
    with LOG.open("a") as file:
        file.write(f"{name} {context.idempotency_key} begun\\n")
    await asyncio.sleep(seconds)
    with LOG.open("a") as file:
        file.write(f"{name} {context.idempotency_key} done\\n")
    return ToolResult(llm_response=name)

@tool(description="quick")
async def quick(context: ToolContext = None) -> ToolResult:
    return await work("quick", context, 0.2)

@tool(description="slow")
async def slow(context: ToolContext = None) -> ToolResult:
    return await work("slow", context, 1)

@tool(description="asked about first")
async def risky(context: ToolContext = None) -> ToolResult:
    return await work("risky", context, 0.5)

@tool(description="stubborn")
async def stubborn(context: ToolContext = None) -> ToolResult:
    try:
        return await work("stubborn", context, 1)
    except asyncio.CancelledError:
        await asyncio.sleep(0.3)
        return ToolResult(llm_response="late")

@tool(description="finishes", uninterruptible=True)
async def firm(context: ToolContext = None) -> ToolResult:
    return await work("firm", context, 0.7)
"""
MEMORY = """
schema:
  public:
    last: {type: text}
    name: {type: text}
    ready: {type: bool, llm_settable: true}
    count: {type: int, llm_settable: true}
"""
RESPONSES = "responses:\n  utter_one: One.\n  utter_two: Two?\n  utter_ask: Who?\n"
FRONT = "[{risky: {requires_confirmation: {enabled: true}}}, {slow: {requires: session.work.ready}}]"


def project(blocks: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return a skill whose prose names the first of ``blocks``; JSON is YAML enough."""
    fences = "\n".join(
        f":::ordered_block id={name}\n{json.dumps({'steps': steps})}\n:::" for name, steps in blocks.items()
    )
    return {
        "skills/work/skill.md": skill(f"Run @block.b0 when asked.\n{fences}", tool_constraints=FRONT),
        "skills/work/memory.yml": MEMORY,
        "skills/work/responses.yml": RESPONSES,
        "skills/work/tools.py": TOOLS,
        "skills/other/skill.md": skill("Talk."),
    }


# --- every block ends or waits -----------------------------------------------------------------

CONDITIONS = st.sampled_from(
    ["session.work.ready", "not session.work.ready", "session.work.count > 1", "session.work.name"]
)
BODIES = st.one_of(
    st.sampled_from(["utter_one", "utter_two"]).map(lambda name: {"action": name}),
    st.sampled_from(["quick", "slow", "risky", "firm", "listen"]).map(lambda name: {"execute_tool": name}),
    st.just({"collect": "name", "utterance": "utter_ask"}),
    st.just({"noop": True}),
    st.sampled_from([{"ready": True}, {"ready": False}, {"count": 3}]).map(lambda values: {"set_memory": values}),
    st.just({"instructions": "Talk.", "complete_when": "session.work.ready"}),
    st.sampled_from(["@block.b1", "@skill.other"]).map(lambda target: {"call": target}),
)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """Draw two blocks of random steps with random branches."""

    def block(prefix: str) -> list[dict[str, Any]]:
        size = draw(st.integers(1, 5))
        targets = st.sampled_from([*(f"{prefix}{n}" for n in range(size)), "END"])
        steps = []
        for n in range(size):
            step = {"id": f"{prefix}{n}", **draw(BODIES)}
            if prefix == "y" and step.get("call") == "@block.b1":
                step["call"] = "@skill.other"
            if "noop" in step or draw(st.booleans()):
                branches = [{"if": draw(CONDITIONS), "then": draw(targets)} for _ in range(draw(st.integers(1, 2)))]
                step["next"] = [*branches, {"else": draw(targets)}]
            steps.append(step)
        return steps

    return {"b0": block("x"), "b1": block("y")}


MOVES: list[Any] = [
    tool_call("start_skill", skill="work"),
    tool_call("start_skill", skill="other"),
    tool_call("run_block", block="b0"),
    tool_call("set_fields", ready=True),
    tool_call("set_fields", ready=False, count=2),
    tool_call("set_fields", name="Ann"),
    tool_call("set_fields", name="Bob"),
    tool_call("confirm"),
    tool_call("deny"),
    tool_call("complete"),
    tool_call("cancel_skill"),
    tool_call("listen"),
    tool_call("cannot_help"),
    tool_call("quick"),
    tool_call("risky"),
    "Some words.",
    "Shall we?",
    "",
    ["Text and ", tool_call("quick"), tool_call("set_fields", count=1)],
]


@RELAXED
@given(blocks=graphs(), seed=st.integers(0, 2**32))
def test_whatever_a_block_and_a_model_do_every_turn_ends_within_its_budget(
    tmp_path_factory: pytest.TempPathFactory, blocks: dict[str, list[dict[str, Any]]], seed: int
) -> None:
    root = tmp_path_factory.mktemp("graph")
    dice = random.Random(seed)
    model = ScriptedModel(then=lambda request: dice.choice(MOVES), name="embedded")
    try:
        bench = caller(root, project(blocks), model=model)
    except ProjectError as fault:
        # Circles that nothing can leave are found when the project loads; everything else must load.
        assert {p.id for p in fault.problems if p.severity.value == "error"} <= {"skill.block.endless"}
        assume(False)

    async def scenario() -> None:
        bench.model._script = [MOVES[0], MOVES[2]]
        for text in ("work", "hm", SILENCE, "yes", "no", SESSION_START, "and now"):
            before = len(model.requests)
            said = await asyncio.wait_for(bench.says(text), 120)
            assert said.result.status in (TurnStatus.COMPLETED, TurnStatus.ERROR)
            assert len(model.requests) - before <= 2 * bench.agent.config.agent.max_model_iterations
            if said.result.error:
                assert "steps without waiting" in said.result.error
            assert len(bench.stack) <= 11
            _no_memory_without_provenance(bench)
            _every_call_has_its_result(bench)

    run_virtual(scenario())


def _no_memory_without_provenance(bench: Caller) -> None:
    written = {(e["namespace"], e["key"], e["value_json"]): e["source"] for e in bench.events("memory_set")}
    for namespace, key, value in bench.conversation.state.memory.snapshot():
        source = written[namespace, key, json.dumps(value)]
        assert source in ("tool", "model", "step", "engine", "seed", "hook")


def _every_call_has_its_result(bench: Caller) -> None:
    for request in bench.model.requests:
        calls = [call.id for m in request.messages for call in m.tool_calls]
        results = [m.tool_call_id for m in request.messages if m.role == "tool"]
        assert sorted(calls) == sorted(results)


# --- nobody is left without a word -------------------------------------------------------------


@RELAXED
@given(blocks=graphs(), seed=st.integers(0, 2**32))
def test_no_words_of_a_caller_are_met_with_silence_unless_a_listen_says_so(
    tmp_path_factory: pytest.TempPathFactory, blocks: dict[str, list[dict[str, Any]]], seed: int
) -> None:
    dice = random.Random(seed)
    moves: list[Any] = []

    def move(request: Any) -> Any:
        offered = {tool.name for tool in request.tools}
        answers = [m for m in (tool_call("confirm"), tool_call("deny")) if m.name in offered]
        fitting = [m for m in MOVES if not isinstance(m, ToolCall) or m.name in offered]
        moves.append(dice.choice(answers if answers and dice.random() < 0.6 else fitting))
        return moves[-1]

    model = ScriptedModel(then=move, name="embedded")
    try:
        bench = caller(tmp_path_factory.mktemp("silence"), project(blocks), model=model)
    except ProjectError:
        assume(False)

    async def scenario() -> None:
        bench.model._script = [MOVES[0], MOVES[2]]
        for text in ("work", "hm", SILENCE, "yes", "other", "no", "yes", "and now"):
            moves.clear()
            said = await bench.says(text)
            if text is not SILENCE and not said.messages and not said.sink.hung_up:
                assert moves[-1:] == [tool_call("listen")] or _waits_for_the_caller(bench)

    run_virtual(scenario())


def _waits_for_the_caller(bench: Caller) -> bool:
    top = bench.conversation.state.top
    return top is not None and top.cursor is not None and isinstance(top.cursor.step, ListenStep)


# --- cancelled at any instant ------------------------------------------------------------------

CHAIN = {
    "b0": [
        {"execute_tool": "quick"},
        {"set_memory": {"ready": True}},
        {"execute_tool": "slow"},
        {"call": "@block.b1"},
        {"execute_tool": "firm"},
    ],
    "b1": [{"execute_tool": "stubborn"}, {"execute_tool": "risky"}],
}


def _next_move(request: Any) -> Any:
    """What a sensible model does with what it is offered."""
    names = {tool.name for tool in request.tools}
    if request.scope.confirming:
        return [0.2, tool_call("confirm")]
    if "run_block" in names:
        return [0.2, tool_call("run_block", block="b0")]
    return [0.1, "Right. ", 0.3, "Go on."] if request.scope.active_skill else [0.2, MOVES[0]]


@RELAXED
@given(
    instants=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=6),
    reasons=st.lists(st.sampled_from(list(CancelReason)), min_size=6, max_size=6),
)
def test_no_instant_of_a_cancellation_loses_a_recorded_result_or_runs_a_recorded_tool_again(
    tmp_path_factory: pytest.TempPathFactory, instants: list[float], reasons: list[CancelReason]
) -> None:
    root = tmp_path_factory.mktemp("cut")

    async def scenario() -> None:
        bench = caller(root, project(CHAIN), model=ScriptedModel(then=_next_move, name="embedded"))
        for at, reason in zip(instants, reasons, strict=False):
            before = list(bench.conversation.events)
            await _cut(bench, at, reason)
            # Append-only: what was recorded stays recorded, as it was.
            assert list(bench.conversation.events)[: len(before)] == before
            _no_memory_without_provenance(bench)
            _every_call_has_its_result(bench)
        for _ in range(12):
            await bench.says("go on")
        _no_memory_without_provenance(bench)
        _runs_are_recorded_once(root, bench)

    run_virtual(scenario())


async def _cut(bench: Caller, at: float, reason: CancelReason) -> None:
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(at, token, reason))
        group.create_task(bench.says("work", cancel=token))


def _runs_are_recorded_once(root: Path, bench: Caller) -> None:
    log = root / "skills/work/effects.txt"
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    done = [(name, key) for name, key, what in lines if what == "done"]
    recorded = [e["tool"] for e in bench.events("tool_executed") if e["tool"] not in ("listen", "hangup")]
    # A finished run of a step is never followed by another run of that same step.
    assert len(done) == len(set(done))
    late = sum(1 for e in bench.events("tool_executed") if e["result_json"] == '"late"')
    assert len(recorded) == len(done) + late
    assert len(bench.events("mcp_tool_executed")) == len(bench.events("tool_executed"))
    for position, (name, key, what) in enumerate(lines):
        if what == "done":
            assert (name, key, "begun") not in [tuple(line) for line in lines[position:]]
