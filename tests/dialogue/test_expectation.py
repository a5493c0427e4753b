"""The open question tells what would answer it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, skill
from voice_agent.dialogue.reply import ExpectedAnswer

START = tool_call("start_skill", skill="ask")


def _files(field: str) -> dict[str, str]:
    return {
        "skills/ask/skill.md": skill(block("- collect: value\n  utterance: utter_ask_value")),
        "skills/ask/memory.yml": f"schema:\n  public:\n    value: {{{field}}}\n",
        "skills/ask/responses.yml": "responses:\n  utter_ask_value: Tell me.\n",
        "skills/other/skill.md": skill("Talk.\n"),
    }


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("type: text, description: Six-digit account number", ExpectedAnswer("digits", length=6)),
        ("type: text, description: The 4 digits on the back", ExpectedAnswer("digits", length=4)),
        ("type: text, description: Telephone number", ExpectedAnswer("digits")),
        ("type: text, description: Day of the visit", ExpectedAnswer("date")),
        ("type: text, description: What is wrong", ExpectedAnswer("text")),
        ("type: int, description: How many people share it", ExpectedAnswer("number")),
        ("type: bool, description: Do you stream films", ExpectedAnswer("yes_no")),
        ("type: categorical, enum_values: [red, blue]", ExpectedAnswer("choice", choices=("red", "blue"))),
    ],
)
async def test_a_collect_step_that_has_asked_expects_its_field(
    tmp_path: Path, field: str, expected: ExpectedAnswer
) -> None:
    bench = caller(tmp_path, _files(field), [START, ""])
    assert bench.conversation.expected is None
    said = await bench.says("hello")
    assert said.messages == ["Tell me."]
    assert bench.conversation.expected == expected


async def test_a_held_tool_call_expects_yes_or_no(tmp_path: Path) -> None:
    tools = (
        "from voice_agent.dialogue import tool, ToolResult\n\n"
        '@tool(description="Pay")\nasync def pay() -> ToolResult:\n    return ToolResult(llm_response="paid")\n'
    )
    files = {
        "skills/ask/skill.md": "---\nname: Pay\ndescription: Pay.\ntool_constraints:\n"
        "  - pay: {requires_confirmation: true}\n---\nHelp the caller pay.\n",
        "skills/ask/tools.py": tools,
        "skills/other/skill.md": skill("Talk.\n"),
    }
    bench = caller(tmp_path, files, [START, tool_call("pay"), "Shall I pay?", tool_call("confirm"), "Paid."])
    await bench.says("pay")
    assert bench.conversation.expected == ExpectedAnswer("yes_no")
    await bench.says("yes")
    assert bench.conversation.expected is None
