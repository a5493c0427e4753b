"""The agent had decided to hang up, the caller resumed, the reply was discarded, and the hang-up ran all the same.

Right: calls of a reply that was cut off are not made; neither is a hang-up.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import caller, skill
from tests.support.virtual_time import run_virtual
from voice_agent.dialogue.cancellation import CancelReason, CancelToken


@pytest.mark.parametrize("at", [0.1, 0.5, 0.99, 1.5, 1.99])
def test_no_hang_up_comes_out_of_a_reply_that_was_cut(tmp_path: Path, at: float) -> None:
    async def scenario() -> None:
        script = [[1.0, "Goodbye then.", 1.0, tool_call("hangup")], "I am still here."]
        bench = caller(tmp_path, {"skills/talk/skill.md": skill("Chat.")}, script)
        token = CancelToken()
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(bench.says("that was all", cancel=token))
            await asyncio.sleep(at)
            token.cancel(CancelReason.BARGE_IN)
        assert not turn.result().sink.hung_up
        assert bench.events("tool_executed") == []
        assert (await bench.says("wait, one more thing")).messages == ["I am still here."]

    run_virtual(scenario())
