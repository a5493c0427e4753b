"""A barge-in during the goodbye left the call neither ended nor going on, and the agent never hung up again.

Right: the end of a call has one instant of decision. Before it everything is rolled back; at it the
end is recorded and asked for; a caller who speaks over the goodbye stays on the line and can end the
call again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import block, caller, cancel_after, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import HeardReply, TurnStatus

HOOK = """
import asyncio
from voice_agent.dialogue.hooks import modify_outgoing_message

@modify_outgoing_message
async def look(payload):
    await asyncio.sleep(0.4)
"""
FILES = {
    "skills/talk/skill.md": skill("Talk."),
    "skills/bye/skill.md": skill(block("- action: utter_bye\n- execute_tool: hangup"), description="Bye."),
    "responses.yml": "responses: {utter_bye: So long.}\n",
}
WAYS = {
    "model": [0.5, tool_call("hangup"), 0.5],
    "words": [0.2, "Goodbye then. ", 0.3, tool_call("hangup"), 0.5],
    "step": [0.5, tool_call("start_skill", skill="bye"), 0.5],
}


@virtual_time
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("at", [0.1, 0.4, 0.9, 1.1, 1.5])
async def test_at_every_instant_the_end_is_asked_for_and_recorded_or_neither(
    tmp_path: Path, way: str, hooked: bool, at: float
) -> None:
    files = {**FILES, "hooks.py": HOOK} if hooked else FILES
    bench = caller(tmp_path, files, model=ScriptedModel([WAYS[way], "Yes?", tool_call("hangup")]))
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(at, token, CancelReason.BARGE_IN))
        turn = group.create_task(bench.says("bye", cancel=token, commit=False))
    said = turn.result()
    ended = [e["tool"] for e in bench.events("tool_executed")] == ["hangup"]
    assert said.sink.hung_up == ended
    if said.result.status is TurnStatus.COMPLETED:
        assert ended
    bench.conversation.commit_reply("t0", HeardReply("", said.sink.text))
    # Whatever became of it, the caller who stayed is answered, and can end the call.
    assert "Yes?" in (await bench.says("wait")).messages
    assert (await bench.says("bye now")).sink.hung_up
    assert bench.stack == []


async def test_an_end_that_was_spoken_over_is_not_shown_to_the_model_as_done(tmp_path: Path) -> None:
    bench = caller(tmp_path, FILES, [tool_call("hangup"), "Yes?"])
    await bench.says("bye", heard=HeardReply("Thank", "you for calling. Goodbye."))
    await bench.says("wait")
    assert not any(call.name == "hangup" for m in bench.model.requests[1].messages for call in m.tool_calls)
