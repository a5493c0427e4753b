"""Guesses at what the caller will have said ran tools, wrote memory, doubled the cost and were answered as well.

Right: a turn that is replaced by a longer one leaves nothing: no words in the history, no call of a
tool it had not yet run, no second reply; while a tool runs, no other turn begins; and a turn makes
no more model calls than it needs.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import Caller, caller, cancel_after, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import TurnStatus

FILES = {
    "skills/shop/skill.md": skill("Sell."),
    "skills/shop/tools.py": """
        import asyncio
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Order", uninterruptible=True)
        async def order() -> ToolResult:
            await asyncio.sleep(2)
            return ToolResult(llm_response="ordered")
        """,
}
START, ORDER = tool_call("start_skill", skill="shop"), tool_call("order")


async def superseded(bench: Caller, text: str) -> None:
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.3, token, CancelReason.SUPERSEDED))
        turn = group.create_task(bench.says(text, cancel=token))
    assert turn.result().result.status is TurnStatus.CANCELLED
    assert turn.result().messages == []


@virtual_time
async def test_three_guesses_and_the_words_themselves_are_one_message_and_one_reply(tmp_path: Path) -> None:
    guess = [0.5, [START, tool_call("set_fields", x=1)][0]]
    bench = caller(tmp_path, FILES, [guess, guess, guess, "Of course.", "Bye."])
    for text in ("I want", "I want to", "I want to pay"):
        await superseded(bench, text)
    assert (await bench.says("I want to pay my bill")).messages == ["Of course."]
    assert (bench.stack, bench.events("memory_set"), bench.events("tool_executed")) == ([], [], [])
    await bench.says("bye")
    said = [(m.role, m.content) for m in bench.model.requests[-1].messages[1:]]
    assert said == [("user", "I want to pay my bill"), ("assistant", "Of course."), ("user", "bye")]


@virtual_time
async def test_words_while_a_tool_runs_wait_for_its_result_and_get_one_answer(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [START, ORDER, "It is ordered."])
    loop = asyncio.get_running_loop()
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.says("order it", cancel=token))
        await asyncio.sleep(0.5)
        token.cancel(CancelReason.BARGE_IN)
        second = group.create_task(bench.says("is it done?"))
        await asyncio.sleep(1)
        # The model is not asked to guess what will have come of it.
        assert len(bench.model.requests) == 2
    assert (first.result().messages, second.result().messages) == ([], ["It is ordered."])
    assert loop.time() >= 2
    assert any(m.content == '"ordered"' for m in bench.model.requests[2].messages)


@virtual_time
async def test_an_answer_costs_one_model_call_and_a_tool_one_more(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, ["Hello.", START, ORDER, "Ordered."])
    assert (await bench.says("hi")).result.model_calls == 1
    assert (await bench.says("order it")).result.model_calls == 3
    assert bench.model.closed_early == 0


@virtual_time
async def test_a_guess_that_was_given_up_no_longer_generates(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [["One ", 1.0, "two"], "Done."])
    await superseded_after_text(bench)
    assert (bench.model.closed_early, bench.model.open_streams) == (1, 0)


async def superseded_after_text(bench: Caller) -> None:
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.3, token, CancelReason.SUPERSEDED))
        group.create_task(bench.says("count", cancel=token, commit=False))
