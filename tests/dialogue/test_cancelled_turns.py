"""A cancelled turn ends as cancelled, keeps what was done, and loses nothing of it.

Tools here append to a file beside the project, so that their effects can be counted.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import Caller, Said, block, caller, cancel_after, skill
from tests.support.virtual_time import run_virtual, virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import HangUp, HeardReply, TurnStatus
from voice_agent.telemetry.metrics import ABANDONED_TASKS

TOOLS = """
import asyncio
from pathlib import Path

from voice_agent.dialogue import tool, ToolContext, ToolResult

LOG = Path(__file__).parent / "effects.txt"

def effect(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")

@tool(description="one second")
async def one(context: ToolContext = None) -> ToolResult:
    context.memory.set("seen", "one")
    effect(f"one {context.idempotency_key}")
    await asyncio.sleep(1)
    context.memory.set("done", "one")
    return ToolResult(llm_response="one")

@tool(description="one second")
async def two(context: ToolContext = None) -> ToolResult:
    effect("two")
    await asyncio.sleep(1)
    return ToolResult(llm_response="two")

@tool(description="one second")
async def three(context: ToolContext = None) -> ToolResult:
    effect("three")
    await asyncio.sleep(1)
    return ToolResult(llm_response="three")

@tool(description="finishes though it is cancelled")
async def stubborn(context: ToolContext = None) -> ToolResult:
    effect("stubborn")
    try:
        await asyncio.sleep(5)
    except asyncio.CancelledError:
        effect(f"cancelled {context.is_cancelled} {context.cancel_reason}")
        await asyncio.sleep(0.2)
    return ToolResult(llm_response="stubborn")

@tool(description="ignores cancellation")
async def deaf(context: ToolContext = None) -> ToolResult:
    effect("deaf")
    for _ in range(20):
        try:
            await asyncio.sleep(0.5)
        except asyncio.CancelledError:
            pass
    try:
        context.memory.set("done", "late")
    except Exception as fault:
        effect(f"refused {type(fault).__name__}")
    return ToolResult(llm_response="deaf")

@tool(description="must not be interrupted", interruptible=False)
async def protected(context: ToolContext = None) -> ToolResult:
    await asyncio.sleep(2)
    effect("protected")
    return ToolResult(llm_response="protected")
"""
MEMORY = "schema:\n  public:\n    seen: {type: text}\n    done: {type: text}\n"


def files(*tools: str) -> dict[str, str]:
    steps = "\n".join(f"- id: {name}\n  execute_tool: {name}" for name in tools) + "\n- action: utter_end"
    return {
        "skills/work/skill.md": skill(block(steps), description="Work."),
        "skills/work/memory.yml": MEMORY,
        "skills/work/responses.yml": "responses: {utter_end: Finished.}\n",
        "skills/work/tools.py": TOOLS,
    }


START = tool_call("start_skill", skill="work")


def effects(root: Path) -> list[str]:
    log = root / "skills/work/effects.txt"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def keys(root: Path) -> list[str]:
    lines = (root / "skills/work/effects.txt").read_text().splitlines()
    return [line.split()[1] for line in lines if line.startswith("one ")]


async def cut(
    bench: Caller, text: str, at: float, reason: CancelReason = CancelReason.BARGE_IN, *, commit: bool = True
) -> Said:
    """Say ``text`` and cancel the turn after ``at`` seconds."""
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(at, token, reason))
        said = group.create_task(bench.says(text, cancel=token, commit=commit))
    return said.result()


def ran(bench: Caller) -> list[str]:
    return [e["tool"] for e in bench.events("tool_executed")]


@virtual_time
async def test_a_tool_cut_off_mid_await_leaves_no_record_keeps_its_writes_and_runs_again(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [START, "Sure."])
    said = await cut(bench, "work", 0.5)
    assert said.result.status is TurnStatus.CANCELLED
    assert (ran(bench), bench.events("mcp_tool_executed")) == ([], [])
    assert (bench.read("work", "seen"), bench.read("work", "done"), bench.stack) == ("one", None, ["work"])
    assert (await bench.says("go on")).messages == ["Finished.", "Sure."]
    assert (ran(bench), effects(tmp_path)) == (["one"], ["one", "one"])
    first, second = keys(tmp_path)
    assert first == second


@virtual_time
async def test_a_tool_that_returns_inside_the_grace_counts_as_done_once(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("stubborn"), [START, "Sure."])
    said = await cut(bench, "work", 0.5)
    assert said.result.status is TurnStatus.CANCELLED
    assert ran(bench) == ["stubborn"]
    lines = (tmp_path / "skills/work/effects.txt").read_text().splitlines()
    assert lines == ["stubborn", "cancelled True barge_in"]
    assert (await bench.says("go on")).messages == ["Finished.", "Sure."]
    assert effects(tmp_path).count("stubborn") == 1


@virtual_time
async def test_a_tool_that_outlives_the_grace_is_abandoned_counted_and_cannot_write(tmp_path: Path) -> None:
    counter = ABANDONED_TASKS.labels(kind="tool deaf")
    before = counter._value.get()
    bench = caller(tmp_path, files("deaf"), [START])
    loop = asyncio.get_running_loop()
    said = await cut(bench, "work", 0.6)
    assert (said.result.status, loop.time()) == (TurnStatus.CANCELLED, pytest.approx(1.6))
    await asyncio.sleep(20)
    assert "refused" in effects(tmp_path)
    assert (bench.read("work", "done"), ran(bench)) == (None, [])
    assert counter._value.get() == before + 1


@virtual_time
async def test_different_activations_of_a_step_have_different_keys(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [START, START])
    await bench.says("work")
    await bench.says("work again")
    first, second = keys(tmp_path)
    assert first != second


@virtual_time
async def test_cancelling_while_the_model_streams_keeps_only_what_was_heard(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [["Your balance ", 1.0, "is forty two."], "Again: forty two."])
    said = await cut(bench, "balance?", 0.5, commit=False)
    assert (said.result.status, said.sink.text) == (TurnStatus.CANCELLED, "Your balance ")
    assert bench.model.closed_early == 1
    bench.conversation.commit_reply("t0", HeardReply("Your", "balance"))
    await bench.says("pardon?")
    said_to_model = [(m.role, m.content) for m in bench.model.requests[1].messages[1:]]
    assert said_to_model == [("user", "balance?"), ("assistant", "Your"), ("user", "pardon?")]


@virtual_time
async def test_a_chain_of_tools_stops_at_the_first_one_not_done(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one", "two", "three"), [START, "Sure."])
    await cut(bench, "work", 2.5)
    assert ran(bench) == ["one", "two"]
    assert (await bench.says("go on")).messages == ["Finished.", "Sure."]
    assert ran(bench) == ["one", "two", "three"]
    assert effects(tmp_path) == ["one", "two", "three", "three"]


@virtual_time
async def test_cancelling_before_twice_and_after_the_end_is_harmless(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), ["Hello."])
    token = CancelToken()
    token.cancel(CancelReason.BARGE_IN)
    assert (await bench.says("work", cancel=token)).result.status is TurnStatus.CANCELLED
    assert bench.model.requests == []
    assert [e["text"] for e in bench.events("user")] == ["work"], "they were said all the same"
    token = CancelToken()
    said = await bench.says("hi", cancel=token)
    token.cancel(CancelReason.HANG_UP)
    token.cancel(CancelReason.BARGE_IN)
    assert said.result.status is TurnStatus.COMPLETED


@virtual_time
async def test_a_message_during_the_grace_waits_for_it_and_is_answered(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("stubborn"), [START, "Nice to hear."])
    loop, token = asyncio.get_running_loop(), CancelToken()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.says("work", cancel=token))
        await asyncio.sleep(0.5)
        token.cancel(CancelReason.BARGE_IN)
        second = group.create_task(bench.says("actually"))
    assert first.result().result.status is TurnStatus.CANCELLED
    assert second.result().result.status is TurnStatus.COMPLETED
    assert loop.time() == pytest.approx(0.7)
    starts = [k for k in bench.kinds if k in ("turn_started", "turn_finished")]
    assert starts == ["turn_started", "turn_finished"] * 3  # session start, cancelled, answered


@virtual_time
async def test_two_messages_at_once_are_handled_strictly_one_after_the_other(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [["A", 1.0], ["B", 1.0]])
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.says("first"))
        group.create_task(bench.says("second"))
    assert [e["text"] for e in bench.events("user") if e["kind"] != "intent"] == ["first", "second"]
    assert [e["text"] for e in bench.events("bot")] == ["A", "B"]
    sequence = [event["sequence"] for event in bench.conversation.events]
    assert sequence == list(range(len(sequence)))


@virtual_time
async def test_an_uninterruptible_tool_finishes_is_recorded_and_the_next_turn_knows_of_it(tmp_path: Path) -> None:
    project = {
        "skills/work/skill.md": skill("Work.", description="Work."),
        "skills/work/memory.yml": MEMORY,
        "skills/work/tools.py": TOOLS,
    }
    bench = caller(tmp_path, project, [START, tool_call("protected"), "It is done."])
    said = await cut(bench, "work", 0.5)
    assert said.result.status is TurnStatus.CANCELLED
    assert (ran(bench), effects(tmp_path)) == (["protected"], ["protected"])
    await bench.says("and?")
    messages = bench.model.requests[2].messages
    assert any(m.role == "tool" and m.content == '"protected"' for m in messages)


@virtual_time
async def test_a_hang_up_asked_for_by_a_reply_that_was_cut_is_not_made(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [["Well, ", 1.0, tool_call("hangup")], "Still here."])
    said = await cut(bench, "wait", 0.5)
    assert not any(isinstance(item, HangUp) for item in said.sink.items)
    assert (ran(bench), (await bench.says("hello?")).messages) == ([], ["Still here."])


@pytest.mark.parametrize("reason", list(CancelReason))
def test_every_reason_ends_the_turn_as_cancelled(tmp_path: Path, reason: CancelReason) -> None:
    async def scenario() -> None:
        bench = caller(tmp_path, files("one"), [START])
        said = await cut(bench, "work", 0.5, reason)
        assert (said.result.status, said.result.error) == (TurnStatus.CANCELLED, None)

    run_virtual(scenario())


@virtual_time
async def test_a_superseded_turn_leaves_its_words_to_the_one_that_follows(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [["Which", 1.0], "Thanks."])
    await cut(bench, "my number is", 0.5, CancelReason.SUPERSEDED, commit=False)
    await bench.says("my number is four two")
    assert [m.content for m in bench.model.requests[1].messages[1:]] == ["my number is four two"]


PROSE = {
    "skills/work/skill.md": skill("Work.", description="Work."),
    "skills/work/memory.yml": MEMORY,
    "skills/work/tools.py": TOOLS,
}


@pytest.mark.parametrize("noted", [False, True], ids=["cut off", "superseded once it was over"])
@virtual_time
async def test_a_tool_that_ran_in_a_turn_that_is_reopened_is_not_run_again(tmp_path: Path, noted: bool) -> None:
    script = [START, "Sure.", tool_call("two"), ["It", 1.0], tool_call("two"), "Done.", tool_call("two"), "Again."]
    bench = caller(tmp_path, PROSE, script)
    await bench.connects()
    await bench.says("work")
    if noted:
        await bench.says("do it", commit=False)
        bench.conversation.note("turn_superseded", turn_id="t2")
    else:
        await cut(bench, "do it", 1.5, CancelReason.SUPERSEDED, commit=False)
    assert effects(tmp_path) == ["two"]
    assert (await bench.says("do it for me")).messages == ["Done."]
    assert effects(tmp_path) == ["two"], "its result is used again"
    assert len(bench.events("tool_result_reused")) == 1
    results = [m.content for m in bench.model.requests[5].messages if m.role == "tool" and m.name == "two"]
    assert results and all("two" in (content or "") for content in results)
    assert (await bench.says("and again")).messages == ["Again."]
    assert effects(tmp_path) == ["two", "two"], "what is asked for anew is done anew"


@virtual_time
async def test_a_tool_of_a_turn_that_was_interrupted_may_run_again_when_asked_for(tmp_path: Path) -> None:
    bench = caller(tmp_path, PROSE, [START, "Sure.", tool_call("two"), ["It", 1.0], tool_call("two"), "Done."])
    await bench.connects()
    await bench.says("work")
    await cut(bench, "do it", 1.5)
    await bench.says("once more please")
    assert effects(tmp_path) == ["two", "two"]


@virtual_time
async def test_a_turn_torn_down_from_outside_takes_its_tool_with_it(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), [START])
    bench.model._then = "Sure."
    task = asyncio.create_task(bench.says("work"))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.events("turn_finished")[-1]["status"] == "cancelled"
    assert (await bench.says("go on")).messages == ["Finished.", "Sure."]


@virtual_time
async def test_a_turn_cancelled_while_it_waits_for_the_one_before_never_begins(tmp_path: Path) -> None:
    project = {
        "skills/work/skill.md": skill("Work.", description="Work."),
        "skills/work/memory.yml": MEMORY,
        "skills/work/tools.py": TOOLS,
    }
    bench = caller(tmp_path, project, [START, tool_call("protected"), "Hello."])
    loop, first, second = asyncio.get_running_loop(), CancelToken(), CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.says("work", cancel=first))
        await asyncio.sleep(0.5)
        first.cancel(CancelReason.BARGE_IN)
        waiting = group.create_task(bench.says("and then?", cancel=second))
        await asyncio.sleep(0.5)
        second.cancel(CancelReason.HANG_UP)
        await waiting
        assert loop.time() == pytest.approx(1.0)
    assert waiting.result().result.status is TurnStatus.CANCELLED
    assert [e["text"] for e in bench.events("user") if e["kind"] != "intent"] == ["work"]
    assert (await bench.says("hello?")).messages == ["Hello."]


@virtual_time
async def test_a_waiting_turn_torn_down_in_any_moment_leaves_the_line_open(tmp_path: Path) -> None:
    bench = caller(tmp_path, files("one"), model=None)
    bench.model._then = "Hello."
    bench.model.first_token_s = 1.0
    for at in (0.5, 1.0, 1.0 - 1e-9, 1.0 + 1e-9, 1.5):
        first = asyncio.create_task(bench.says("a"))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(bench.says("b"))
        asyncio.get_running_loop().call_later(at, waiting.cancel)
        await asyncio.wait({first, waiting})
        async with asyncio.timeout(5):
            assert (await bench.says("c")).messages == ["Hello."]


@virtual_time
async def test_cancelling_while_fields_are_read_out_of_the_first_words_sets_nothing(tmp_path: Path) -> None:
    project = {
        "skills/work/skill.md": skill(block("- collect: seen\n  utterance: utter_ask"), description="Work."),
        "skills/work/memory.yml": MEMORY,
        "skills/work/responses.yml": "responses:\n  utter_ask: What?\n",
    }
    script = [START, [1.0, tool_call("set_fields", seen="cut")], tool_call("set_fields", seen="whole")]
    bench = caller(tmp_path, project, script)
    await cut(bench, "work on cut", 0.5)
    assert (bench.read("work", "seen"), bench.stack) == (None, ["work"])
    await bench.says("whole")
    assert bench.read("work", "seen") == "whole"


@virtual_time
async def test_a_confirmed_tool_that_is_cut_off_is_asked_about_again_before_it_runs_again(tmp_path: Path) -> None:
    project = files("one")
    project["skills/work/skill.md"] = project["skills/work/skill.md"].replace(
        "---\n:::", "tool_constraints: [{one: {requires_confirmation: {enabled: true}}}]\n---\n:::"
    )
    yes = tool_call("confirm")
    # The embedded model words no question: the packaged one is asked.
    bench = caller(tmp_path, project, model=ScriptedModel([START, yes, "Sure?", yes], name="embedded"))
    await bench.says("work")
    await cut(bench, "yes", 0.5)
    assert (ran(bench), len(effects(tmp_path))) == ([], 1)
    assert (await bench.says("hm")).sink.responses == ["utter_confirm"]
    assert len(effects(tmp_path)) == 1
    bench.model._script[2:3] = []
    assert (await bench.says("yes")).messages[0] == "Finished."
    assert ran(bench) == ["one"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(instants=st.lists(st.floats(0.0, 4.0), min_size=1, max_size=4))
def test_whenever_it_is_cancelled_no_result_is_lost_and_none_is_had_twice(
    tmp_path_factory: pytest.TempPathFactory, instants: list[float]
) -> None:
    root = tmp_path_factory.mktemp("cut")

    async def scenario() -> None:
        bench = caller(root, files("one", "two", "three"), [START], model=None)
        bench.model._then = START
        for at in instants:
            await cut(bench, "work", at)
        if bench.stack:
            await bench.says("go on")
        while bench.stack:
            await bench.says("go on")
        recorded = ran(bench)
        assert len(recorded) % 3 == 0
        assert recorded == ["one", "two", "three"] * (len(recorded) // 3)
        assert len(bench.events("mcp_tool_executed")) == len(recorded)
        assert all(e["source"] in ("tool", "model", "engine") for e in bench.events("memory_set"))

    run_virtual(scenario())
