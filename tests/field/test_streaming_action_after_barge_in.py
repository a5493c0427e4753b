"""An action that streams was torn off by a barge-in, and the state it had been about to write was lost.

Right: a tool that is cancelled may drain what it is reading to its end within the grace; its writes
count once, its result is recorded once, and nothing more is said.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, cancel_after, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import TurnStatus

FILES = {
    "skills/stream/skill.md": skill(block("- execute_tool: read_all\n- action: utter_end")),
    "skills/stream/memory.yml": "schema: {public: {chunks: {type: int}, state: {type: text}}}\n",
    "skills/stream/responses.yml": "responses: {utter_end: That was it.}\n",
    "skills/stream/tools.py": """
        import asyncio
        from voice_agent.dialogue import tool, ToolContext, ToolResult

        @tool(description="Reads ten chunks, then the state")
        async def read_all(context: ToolContext = None) -> ToolResult:
            kept = []
            for number in range(10):
                try:
                    await asyncio.sleep(0.05 if context.is_cancelled else 0.3)
                except asyncio.CancelledError:
                    pass
                if not context.is_cancelled:
                    kept.append(number)
            context.memory.set("chunks", len(kept))
            context.memory.set("state", "final")
            return ToolResult(llm_response=kept)
        """,
}


@virtual_time
async def test_a_stream_is_drained_to_its_end_and_its_state_applied_once(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [tool_call("start_skill", skill="stream"), "Sure."])
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(1.0, token, CancelReason.BARGE_IN))
        turn = group.create_task(bench.says("read", cancel=token))
    said = turn.result()
    assert (said.result.status, said.messages) == (TurnStatus.CANCELLED, [])
    assert (bench.read("stream", "chunks"), bench.read("stream", "state")) == (3, "final")
    assert [e["result_json"] for e in bench.events("tool_executed")] == ["[0, 1, 2]"]
    # The step is done: the next turn goes on after it.
    assert (await bench.says("and?")).messages[0] == "That was it."
    assert len(bench.events("tool_executed")) == 1
