"""The records alone say what a conversation was in the middle of."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.model import Part, ScriptedModel, tool_call
from tests.support.dialogue_projects import Caller, block, caller, skill
from tests.support.virtual_time import run_virtual
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.events import payload_of
from voice_agent.dialogue.memory import Memory
from voice_agent.dialogue.replay import open_turns, replay
from voice_agent.dialogue.reply import SESSION_START, SILENCE
from voice_agent.dialogue.state import DialogueState, snapshot
from voice_agent.llm.protocol import ModelRequest
from voice_agent.store import MemoryStore

TOOLS = """
    import asyncio
    from voice_agent.dialogue import tool, ToolContext, ToolResult

    @tool(description="x")
    async def fetch(context: ToolContext = None) -> ToolResult:
        context.memory.set("count", (context.memory.get("count") or 0) + 1)
        await asyncio.sleep(0.01)
        return ToolResult(llm_response={"ok": True})

    @tool(description="x")
    async def pay(context: ToolContext = None) -> ToolResult:
        return ToolResult(llm_response={"paid": True})
    """
FILES = {
    "skills/outer/skill.md": skill(
        block("- execute_tool: fetch\n- call: inner\n- call: '@skill.helper'\n- execute_tool: pay")
        + block("- execute_tool: fetch\n- collect: name\n  utterance: utter_ask\n", id="inner"),
        tool_constraints="[{pay: {requires_confirmation: {enabled: true}}}]",
    ),
    "skills/outer/tools.py": TOOLS,
    "skills/outer/memory.yml": "schema:\n  public:\n    name: {type: text}\n  private:\n    count: {type: int}\n",
    "skills/outer/responses.yml": "responses:\n  utter_ask: What name?\n",
    "skills/helper/skill.md": skill(block("- collect: colour\n  utterance: utter_ask\n")),
    "skills/helper/memory.yml": "schema:\n  public:\n    colour: {type: text}\n",
    "skills/helper/responses.yml": "responses:\n  utter_ask: Which colour?\n",
    "skills/linked/skill.md": skill(
        block("- collect: size\n  utterance: utter_ask\n- link: more") + block("- execute_tool: listen", id="more")
    ),
    "skills/linked/memory.yml": "schema:\n  public:\n    size: {type: text}\n",
    "skills/linked/responses.yml": "responses:\n  utter_ask: Which size?\n",
    "skills/chat/skill.md": skill("Chat. Use @skill.helper for colours."),
    "skills/chat/tools.py": TOOLS,
    "skills/chat/memory.yml": "schema:\n  public:\n    count: {type: int}\n",
}


def known(state: DialogueState) -> dict[str, Any]:
    """What records and state both tell."""
    shot = snapshot(state)
    return {
        "turn": shot["turn"],
        "activations": shot["activations"],
        "memory": sorted(map(str, shot["memory"])),
        "session": (shot["session"]["id"], shot["session"]["user_turns"]),
        "stack": [(f["skill"], f["activation"], f["interrupted"]) for f in shot["stack"]],
        "blocks": [[c["block"] for c in f["cursors"]] for f in shot["stack"]],
        "runs": [f["runs"] for f in shot["stack"]],
        "returns": [f["returns"] for f in shot["stack"]],
    }


def replayed(bench: Caller) -> DialogueState:
    state = DialogueState(Memory(bench.agent.project.schema))
    replay(state, bench.conversation.events, bench.agent.project)
    return state


def wayward(dice: random.Random) -> Any:
    """A model that does anything it is allowed to."""

    def decide(request: ModelRequest) -> Part | list[Part]:
        offered = [tool.name for tool in request.tools]
        arguments: Mapping[str, Mapping[str, Any]] = {
            "start_skill": {"skill": dice.choice(["outer", "helper", "chat", "linked"])},
            "set_fields": {dice.choice(["name", "colour", "size"]): dice.choice(["red", "Ann"])},
            "search_knowledge": {"query": "x"},
        }
        if not offered or dice.random() < 0.3:
            return dice.choice(["I see.", "What else?"])
        name = dice.choice([n for n in offered if n != "hangup"] or offered)
        return tool_call(name, **arguments.get(name, {}))

    return decide


@given(seed=st.integers(0, 2**32), turns=st.integers(1, 12))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_conversation_the_records_give_the_state(
    seed: int, turns: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random turns, cancellations, silences, expiries and hang-ups."""
    dice = random.Random(seed)

    async def run() -> None:
        bench = caller(tmp_path_factory.mktemp("walk"), FILES, model=ScriptedModel(then=wayward(dice)))
        assert [p for p in bench.agent.problems if p.severity.value == "error"] == []
        await bench.connects()
        for _ in range(turns):
            token = CancelToken()
            if dice.random() < 0.2:
                asyncio.get_running_loop().call_later(dice.uniform(0, 0.03), token.cancel, CancelReason.BARGE_IN)
            if dice.random() < 0.1:
                bench.calendar.advance(minutes=61)
            await bench.says(dice.choice(["go on", "yes", SILENCE, SESSION_START]), cancel=token)
            assert known(replayed(bench)) == known(bench.conversation._core.state)
            assert open_turns(bench.conversation.events) == []
        await bench.conversation.close("completed")
        assert replayed(bench).session.id == ""

    run_virtual(run())


async def test_a_tool_that_a_step_ran_is_behind_the_replayed_place(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [tool_call("start_skill", skill="outer"), "Which?"])
    await bench.says("go")
    (frame,) = replayed(bench).stack
    assert [(cursor.block.id, cursor.index) for cursor in frame.cursors] == [("main", 1), ("inner", 1)]


async def test_a_held_call_is_not_rebuilt_from_records_so_it_cannot_run_unasked(tmp_path: Path) -> None:
    files = {
        **FILES,
        "skills/outer/skill.md": skill(
            block("- execute_tool: pay"), tool_constraints="[{pay: {requires_confirmation: {enabled: true}}}]"
        ),
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="outer")])
    await bench.says("go")
    assert bench.conversation._core.state.question is not None
    state = replayed(bench)
    assert state.question is None
    (frame,) = state.stack
    assert frame.cursor is not None and frame.cursor.index == 0, "it is asked about again"


@pytest.mark.parametrize(
    "event",
    [
        {"event": "skill_activated", "skill": "gone"},
        {"skill_completed": {"skill": "never started"}},
        {"ordered_block_started": {"skill": "outer", "block": "gone"}},
        {"ordered_block_completed": {"skill": "outer"}},
        {"memory_set": {"namespace": "outer", "key": "gone", "value_json": "1"}},
        {"memory_set": {"namespace": "outer", "key": "name", "value_json": "{not json"}},
        {"tool_executed": {"tool": "fetch"}},
        {"skill_resumed": {}},
        {"something_new": {"x": 1}},
        {"user": "not a payload"},
        {},
    ],
)
async def test_records_that_make_no_sense_any_more_are_passed_over(tmp_path: Path, event: dict[str, Any]) -> None:
    bench = caller(tmp_path, FILES)
    state = DialogueState(Memory(bench.agent.project.schema))
    replay(state, [event], bench.agent.project)
    assert (state.stack, state.question) == ([], None)


def test_old_flat_rows_are_replayed_too(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES)
    state = DialogueState(Memory(bench.agent.project.schema))
    rows = [
        {"event": "session_started", "session_id": "s", "timestamp": "2030-05-06T12:00:00Z"},
        {"event": "user", "text": "hi", "kind": "text", "turn_id": "t"},
        {"event": "skill_activated", "skill": "chat"},
        {"event": "memory_set", "namespace": "chat", "key": "count", "value_json": "3"},
    ]
    replay(state, rows, bench.agent.project)
    assert (state.session.id, state.session.user_turns, [f.skill.id for f in state.stack]) == ("s", 1, ["chat"])
    assert state.memory.read("chat", "count") == 3


def test_turns_without_an_end_are_found_in_order() -> None:
    def turn(kind: str, id: str) -> dict[str, Any]:
        return {kind: {"turn_id": id}}

    events = [
        turn("turn_started", "a"), turn("turn_finished", "a"), turn("turn_started", "b"), turn("turn_started", "c"),
        {"event": "turn_started", "turn_id": "d"},
    ]  # fmt: skip
    assert open_turns(events) == ["b", "c", "d"]
    assert [payload_of(e)[0] for e in events][-1] == "turn_started"


async def test_how_often_a_step_has_run_is_known_from_records_so_a_third_run_has_a_key_of_its_own(
    tmp_path: Path,
) -> None:
    files = {
        "skills/count/skill.md": skill(
            block("- id: again\n  execute_tool: fetch\n- collect: name\n  utterance: utter_ask\n- id: reset\n"
                  "  set_memory: {name: null}\n  next: again")
        ),
        "skills/count/tools.py": """
            from voice_agent.dialogue import tool, ToolContext, ToolResult

            @tool(description="x")
            async def fetch(context: ToolContext = None) -> ToolResult:
                return ToolResult(llm_response={"key": context.idempotency_key})
            """,
        "skills/count/memory.yml": "schema:\n  private:\n    name: {type: text}\n",
        "skills/count/responses.yml": "responses:\n  utter_ask: What name?\n",
    }  # fmt: skip
    script = [tool_call("start_skill", skill="count"), tool_call("listen"), tool_call("set_fields", name="Ann")]
    store = MemoryStore()
    first = caller(tmp_path, files, script, store=store)
    await first.says("go")
    await first.says("Ann")
    assert replayed(first).stack[0].runs == {"again": 2}

    # The process dies, and its snapshot with it: only records are left.
    records = MemoryStore()
    records.append("c1", list(first.conversation.events))
    later = caller(tmp_path, files, [tool_call("set_fields", name="Bob")], store=records)
    await later.says("Bob")
    keys = [e["result_json"] for e in later.events("tool_executed") if e["tool"] == "fetch"]
    assert (len(keys), len(set(keys))) == (3, 3)
