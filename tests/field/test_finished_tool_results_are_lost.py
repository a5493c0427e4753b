"""A tool finished, the caller barged in, the result was dropped, and the model called the tool again.

Right: a finished result is recorded once, whatever happens next, and the next prompt shows one call
with one result.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import caller, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import TurnStatus

FILES = {
    "skills/shop/skill.md": skill("Sell."),
    "skills/shop/tools.py": """
        import asyncio
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Order")
        async def order() -> ToolResult:
            await asyncio.sleep(1)
            return ToolResult(llm_response={"order": 17})
        """,
}


@virtual_time
async def test_a_result_that_was_there_before_the_barge_in_is_known_to_the_next_turn(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill="shop"), tool_call("order"), [1.0, "Your order is placed."], "Seventeen."]
    bench = caller(tmp_path, FILES, script)
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(bench.says("order one", cancel=token))
        await asyncio.sleep(1.5)
        token.cancel(CancelReason.BARGE_IN)
    assert turn.result().result.status is TurnStatus.CANCELLED
    await bench.says("what is the number?")
    assert [e["tool"] for e in bench.events("tool_executed")] == ["order"]
    messages = bench.model.requests[3].messages
    calls = [call.id for m in messages for call in m.tool_calls if call.name == "order"]
    results = [m.tool_call_id for m in messages if m.role == "tool" and m.content == '{"order": 17}']
    assert len(calls) == 1
    assert calls == results
