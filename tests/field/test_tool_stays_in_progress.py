"""A tool cancelled between its request and its start stayed "in progress" for ever; a tool cut off left a call
without a result in the history, and providers refused the next prompt.

Right: each tool run belongs to one task and ends in a known state; a call in a prompt always has its
one result.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import caller, skill
from tests.support.virtual_time import run_virtual
from voice_agent.dialogue.cancellation import CancelReason, CancelToken

FILES = {
    "skills/shop/skill.md": skill("Sell."),
    "skills/shop/tools.py": """
        import asyncio
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Look")
        async def look() -> ToolResult:
            await asyncio.sleep(1)
            return ToolResult(llm_response="seen")

        @tool(description="Works in a thread, which nothing can cancel")
        async def threaded() -> ToolResult:
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
            await asyncio.sleep(1)
            return ToolResult(llm_response="done")
        """,
}


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.5])
def test_every_call_in_a_later_prompt_has_exactly_one_result(tmp_path: Path, at: float) -> None:
    async def scenario() -> None:
        script = [
            tool_call("start_skill", skill="shop"),
            [tool_call("look"), tool_call("look")],
            "I looked.",
        ]
        bench = caller(tmp_path, FILES, script)
        bench.model._then = "Hello."
        token = CancelToken()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.says("look twice", cancel=token))
            await asyncio.sleep(at)
            token.cancel(CancelReason.BARGE_IN)
        await bench.says("and?")
        for request in bench.model.requests:
            calls = [call.id for m in request.messages for call in m.tool_calls]
            results = [m.tool_call_id for m in request.messages if m.role == "tool"]
            assert calls == results
            assert len(set(calls)) == len(calls)
        # Nothing is left running, and the same tool can be used at once.
        names = {t.get_name() for t in asyncio.all_tasks()}
        assert not any(name.startswith("tool ") for name in names)

    run_virtual(scenario())


async def test_a_tool_working_in_a_thread_is_cut_off_at_its_await(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [tool_call("start_skill", skill="shop"), tool_call("threaded"), "Done."])
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(bench.says("go", cancel=token))
        await asyncio.sleep(0.1)
        token.cancel(CancelReason.HANG_UP)
    assert turn.result().result.status.value == "cancelled"
    assert bench.events("tool_executed") == []
