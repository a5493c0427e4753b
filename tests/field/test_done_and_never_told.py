"""The caller spoke while a payment was made: it was made, and nobody ever said so.

Right: wording that is to be known whole and could not be said any more is recorded as owed, and said first in
the next turn, once.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import Entry, ScriptedModel, tool_call
from tests.support.dialogue_projects import Caller, block, caller, cancel_after, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import SESSION_START, SILENCE, TurnStatus, UserInput
from voice_agent.store.memory import MemoryStore

PAY_TOOL = """
import asyncio
from voice_agent.dialogue import tool, ToolResult

@tool(description="Pay", interruptible=False)
async def pay() -> ToolResult:
    await asyncio.sleep(1)
    return ToolResult(llm_response={"paid": True})
"""
START, PAY = tool_call("start_skill", skill="till"), tool_call("pay")
PAID = "Your payment was made."
STEPS = block("- execute_tool: pay\n- instructions: Help on.\n  complete_when: session.till.done")


def till(root: Path, body: str, script: list[Entry], record: str = "full", store: MemoryStore | None = None) -> Caller:
    files = {
        "skills/till/skill.md": skill(body, tool_constraints="[pay: {on_success: utter_paid}]"),
        "skills/till/tools.py": PAY_TOOL,
        "skills/till/memory.yml": "schema: {public: {done: {type: bool}}}\n",
        "responses.yml": f"responses:\n  utter_paid:\n    - {{text: {PAID}, record: {record}}}\n",
    }
    return caller(root, files, script, store=store)


async def speaks_meanwhile(bench: Caller, reason: CancelReason = CancelReason.BARGE_IN) -> None:
    """The caller asks to pay, and says more while the tool is at work."""
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.5, token, reason))
        turn = group.create_task(bench.says("pay it", cancel=token))
    assert (turn.result().result.status, turn.result().messages) == (TurnStatus.CANCELLED, [])
    assert [e["success"] for e in bench.events("tool_executed")] == [True]


@virtual_time
@pytest.mark.parametrize(("body", "script"), [(STEPS, [START]), ("Help.", [START, PAY])])
async def test_what_was_done_is_said_first_in_the_next_turn_and_once(
    tmp_path: Path, body: str, script: list[Entry]
) -> None:
    bench = till(tmp_path, body, [*script, "At nine.", "Goodbye."])
    await speaks_meanwhile(bench)
    assert [(e["turn_id"], e["text"]) for e in bench.events("reply_owed")] == [("t0", PAID)]
    assert (await bench.says("when do you open?")).messages == [PAID, "At nine."]
    assert (await bench.says("thanks")).messages == ["Goodbye."]
    assert f"You have just said: {PAID}" in bench.model.requests[-2].messages[0].content


@virtual_time
async def test_a_turn_that_goes_on_with_the_words_of_the_one_before_says_it_once(tmp_path: Path) -> None:
    bench = till(tmp_path, "Help.", [START, PAY, PAY, "Anything else?"])
    await speaks_meanwhile(bench, CancelReason.SUPERSEDED)
    assert (await bench.says("pay it, please")).messages == [PAID, "Anything else?"]
    assert len(bench.events("tool_executed")) == len(bench.events("tool_result_reused")) == 1


@virtual_time
async def test_a_second_interruption_before_it_is_said_loses_nothing(tmp_path: Path) -> None:
    bench = till(tmp_path, STEPS, [START, "At nine."])
    await speaks_meanwhile(bench)
    token = CancelToken()
    token.cancel(CancelReason.BARGE_IN)
    await bench.says("when", cancel=token)
    assert (await bench.says("when do you open?")).messages == [PAID, "At nine."]


@virtual_time
async def test_who_falls_silent_is_told_before_being_asked_whether_they_are_there(tmp_path: Path) -> None:
    bench = till(tmp_path, STEPS, [START])
    await speaks_meanwhile(bench)
    assert (await bench.says(SILENCE)).messages[0] == PAID


@virtual_time
async def test_who_comes_back_is_greeted_and_then_told_even_by_another_process(tmp_path: Path) -> None:
    store = MemoryStore()
    bench = till(tmp_path, STEPS, [START], store=store)
    await speaks_meanwhile(bench, CancelReason.DISCONNECTED)
    await bench.conversation.close("disconnected")
    model = ScriptedModel(["At nine."])
    agent = Agent.load(bench.agent.config, model, store=store, clock=bench.calendar)
    again = Caller(agent, model, bench.calendar, agent.open("c1", channel="text"))
    assert PAID not in (await again.says(SESSION_START)).messages
    assert (await again.says(UserInput("when do you open?"))).messages == [PAID, "At nine."]


@virtual_time
async def test_a_session_that_has_ended_owes_nothing(tmp_path: Path) -> None:
    bench = till(tmp_path, STEPS, [START, "Hello."])
    await speaks_meanwhile(bench)
    bench.calendar.advance(minutes=90)
    assert PAID not in (await bench.says("hello")).messages


@virtual_time
async def test_other_wording_stays_unsaid(tmp_path: Path) -> None:
    bench = till(tmp_path, STEPS, [START, "At nine."], record="heard")
    await speaks_meanwhile(bench)
    assert (await bench.says("when do you open?")).messages == ["At nine."]
