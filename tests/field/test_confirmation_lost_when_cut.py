"""The booking was made, its confirmation was cut off by the caller, and the agent no longer knew of it.

Right: what was done stands in memory and in the tracker, whatever was heard of the words about it.
"""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import block, caller, skill
from voice_agent.dialogue.reply import HeardReply

FILES = {
    "skills/booking/skill.md": skill(block("- execute_tool: book\n- action: utter_booked")),
    "skills/booking/memory.yml": "schema: {public: {day: {type: text}, confirmed: {type: bool}}}\n",
    "skills/booking/responses.yml": "responses:\n  utter_booked: 'Your visit on {day} is booked.'\n",
    "skills/booking/tools.py": """
        from voice_agent.dialogue import tool, ToolContext, ToolResult

        @tool(description="Book")
        async def book(context: ToolContext = None) -> ToolResult:
            context.memory.set("day", "Tuesday")
            context.memory.set("confirmed", True)
            return ToolResult(llm_response={"booked": "Tuesday"})
        """,
    "skills/other/skill.md": skill("Talk.", description="Other."),
}


async def test_a_booking_whose_confirmation_was_cut_is_still_made_and_known(tmp_path: Path) -> None:
    script = [tool_call("start_skill", skill="booking"), tool_call("start_skill", skill="other"), "On Tuesday."]
    bench = caller(tmp_path, FILES, script)
    await bench.says(
        "book me", heard=HeardReply("Your", "visit on Tuesday is booked. Is there anything else I can help you with?")
    )
    assert bench.read("booking", "confirmed") is True
    await bench.says("and when?")
    assert [e["tool"] for e in bench.events("tool_executed") if e["tool"] == "book"] == ["book"]
    request = bench.model.requests[-1]
    assert [m.content for m in request.messages if m.role == "tool" and m.name == "book"] == ['{"booked": "Tuesday"}']
    assert "booking.day = 'Tuesday'" in request.messages[0].content
    heard = [m.content for m in request.messages if m.role == "assistant" and m.content]
    assert heard == ["Your"]
