"""Whatever a tool returns or raises, the turn goes on, and what has run counts as run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import Caller, caller, skill
from voice_agent.dialogue.dispatch import MAX_RECORDED_CHARS
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.dialogue.turn import MAX_RESULT_CHARS

HEAD = """
from voice_agent.dialogue import tool, ToolResult

class Panic(BaseException):
    pass

class Mute(Exception):
    def __str__(self):
        raise ValueError("nothing to say")

class Mum:
    def __str__(self):
        raise ValueError("nothing to say")

def endless():
    found = []
    found.append(found)
    return found

@tool(description="x")
async def work() -> ToolResult:
"""
START = tool_call("start_skill", skill="a")


def working(root: Path, body: str) -> Caller:
    files = {"skills/a/skill.md": skill("Talk."), "skills/a/tools.py": f"{HEAD}    {body}\n"}
    return caller(root, files, [START, tool_call("work"), "Done.", "And again."])


async def outcome(bench: Caller) -> tuple[bool, Any]:
    """Run the tool, then one more turn with its result in the history; return what was recorded of it."""
    for words, answer in (("do it", "Done."), ("go on", "And again.")):
        said = await bench.says(words)
        assert (said.result.status, said.messages) == (TurnStatus.COMPLETED, [answer])
    (event,) = bench.events("tool_executed")
    return event["success"], json.loads(event["result_json"], parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("float('nan')", "nan"),
        ("[float('inf'), {1: {2}}]", ["inf", {"1": [2]}]),
        ("chr(0xD800)", "\ud800"),
        ("10**5000", {"note": "It has run; its result cannot be shown."}),
        ("endless()", {"note": "It has run; its result cannot be shown."}),
        ("Mum()", {"note": "It has run; its result cannot be shown."}),
    ],
)
async def test_a_result_without_a_form_in_json_counts_as_run(tmp_path: Path, value: str, kept: Any) -> None:
    assert await outcome(working(tmp_path, f"return ToolResult(llm_response={value})")) == (True, kept)


@pytest.mark.parametrize("fault", ["Panic", "Mute"])
async def test_a_fault_of_any_kind_is_a_failed_tool(tmp_path: Path, fault: str) -> None:
    success, result = await outcome(working(tmp_path, f"raise {fault}()"))
    assert not success
    assert fault in result["error"]


async def test_a_result_is_recorded_up_to_a_limit(tmp_path: Path) -> None:
    bench = working(tmp_path, "return ToolResult(llm_response='y' * 5_000_000)")
    success, result = await outcome(bench)
    assert (success, len(result["cut"]), result["left_out"]) == (
        True,
        MAX_RECORDED_CHARS,
        5_000_002 - MAX_RECORDED_CHARS,
    )
    assert max(len(m.content) for r in bench.model.requests for m in r.messages) < MAX_RESULT_CHARS + 100


async def test_half_a_character_typed_by_a_caller_breaks_no_later_turn(tmp_path: Path) -> None:
    bench = caller(tmp_path, {"skills/a/skill.md": skill("Talk.")}, ["One.", "Two."])
    for text in ("a \ud800 b", "go on"):
        assert (await bench.says(text)).result.status is TurnStatus.COMPLETED
