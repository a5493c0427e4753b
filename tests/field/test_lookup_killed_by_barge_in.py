"""A barge-in 10 ms into a lookup killed it, the model took the silence for an answer: "you are not on file".

Right: a lookup that was cut off leaves no result at all and is made again, so what it finds reaches
the next prompt; one that must not be interrupted finishes, and its result is there.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import Caller, block, caller, cancel_after, skill
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import TurnStatus

TOOL = """
import asyncio
from voice_agent.dialogue import tool, ToolResult

@tool(description="Look the caller up", interruptible={interruptible})
async def look_up() -> ToolResult:
    await asyncio.sleep(1)
    return ToolResult(llm_response={{"found": "Ann"}})
"""
START, LOOK_UP = tool_call("start_skill", skill="desk"), tool_call("look_up")


def desk(root: Path, body: str, script: list[object], interruptible: bool = True) -> Caller:
    files = {
        "skills/desk/skill.md": skill(body),
        "skills/desk/tools.py": TOOL.format(interruptible=interruptible),
        "skills/desk/memory.yml": "schema: {public: {done: {type: bool}}}\n",
    }
    return caller(root, files, script)  # type: ignore[arg-type]


async def barge_in(bench: Caller) -> None:
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.01, token, CancelReason.BARGE_IN))
        turn = group.create_task(bench.says("it is me", cancel=token))
    assert turn.result().result.status is TurnStatus.CANCELLED


@virtual_time
async def test_a_lookup_in_a_block_is_made_again_and_answers(tmp_path: Path) -> None:
    body = block("- execute_tool: look_up\n- instructions: Greet.\n  complete_when: session.desk.done")
    bench = desk(tmp_path, body, [START, "Hello Ann."])
    await barge_in(bench)
    assert (await bench.says("hello?")).messages == ["Hello Ann."]
    results = [m.content for m in bench.model.requests[-1].messages if m.role == "tool" and m.name == "look_up"]
    assert (results, len(bench.events("tool_executed"))) == (['{"found": "Ann"}'], 1)


@virtual_time
async def test_a_lookup_that_the_model_asked_for_leaves_no_answer_it_could_misread(tmp_path: Path) -> None:
    bench = desk(tmp_path, "Help.", [START, LOOK_UP, LOOK_UP, "Hello Ann."])
    await barge_in(bench)
    assert (await bench.says("hello?")).messages == ["Hello Ann."]
    assert not any(m.name == "look_up" for m in bench.model.requests[2].messages)
    assert [e["result_json"] for e in bench.events("tool_executed")] == ['{"found": "Ann"}']


@virtual_time
@pytest.mark.parametrize("body", ["Help.", block("- execute_tool: look_up")])
async def test_a_lookup_that_must_not_be_interrupted_is_known_to_the_next_turn(tmp_path: Path, body: str) -> None:
    script = [START, *([LOOK_UP] if body == "Help." else []), "Hello Ann."]
    bench = desk(tmp_path, body, script, interruptible=False)
    await barge_in(bench)
    assert len(bench.events("tool_executed")) == 1
    assert "Hello Ann." in (await bench.says("hello?")).messages
    assert any(m.content == '{"found": "Ann"}' for m in bench.model.requests[-1].messages)
