"""Tracker events for people: short, with the stack of skills, and nothing the talk shows already."""

from __future__ import annotations

import io
from typing import Any

from voice_agent.authoring.event_lines import EventLines, Line
from voice_agent.cli.chat_console import ChatConsole


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"conversation_id": "c", "sequence": 0, kind: {"turn_id": "t1", **payload}}


def tool(success: bool = True, result: str = '{"ok": true}') -> dict[str, Any]:
    return event("tool_executed", tool="pay", arguments_json='{"bill": "7"}', result_json=result, success=success)


def test_tools_memory_and_skills_have_a_line_each() -> None:
    lines = EventLines()
    assert lines.line(tool()) == Line("tool", "pay(bill='7') → {\"ok\": true}")
    failed = lines.line(tool(False, '{"error": "down"}'))
    assert failed == Line("failure", 'pay(bill=\'7\') failed → {"error": "down"}')
    written = lines.line(event("memory_set", namespace="project", key="name", value_json='"Ann"', source="tool"))
    assert written == Line("memory", 'project.name = "Ann" (tool)')


def test_the_stack_of_skills_is_followed() -> None:
    lines = EventLines()
    shown = [
        lines.line(event(f"skill_{what}", skill=skill))
        for what, skill in (
            ("activated", "a"),
            ("activated", "b"),
            ("interrupted", "b"),
            ("resumed", "a"),
            ("completed", "a"),
            ("cancelled", "b"),
        )
    ]
    assert [line.text.split("   ")[1] for line in shown if line] == [
        "[a]", "[a › b]", "[a › b]", "[b › a]", "[b]", "[no skill is open]",
    ]  # fmt: skip


def test_what_the_talk_shows_is_left_out_and_what_is_new_is_shown_as_it_is() -> None:
    lines = EventLines()
    assert [lines.line(event(kind, text="x")) for kind in ("user", "bot", "mcp_tool_executed", "turn_started")] == [
        None
    ] * 4
    assert lines.line(event("turn_finished", status="completed")) is None
    assert lines.line(event("turn_finished", status="cancelled")) == Line("note", "turn cancelled")
    assert lines.line(event("something_new", a=1)) == Line("note", "something_new a=1")


def test_a_huge_result_is_cut() -> None:
    line = EventLines().line(tool(result="x" * 10_000))
    assert line is not None and len(line.text) <= 300


def test_an_event_never_breaks_into_a_sentence() -> None:
    output = io.StringIO()
    console = ChatConsole(file=output, width=200)
    console.print("Your balance ", end="")
    console.show_event(tool())
    console.print("is forty two.", end="")
    console.print()
    console.show_event(event("user", text="unseen"))
    assert [line.strip() for line in output.getvalue().splitlines()] == [
        "Your balance", "⚙ pay(bill='7') → {\"ok\": true}", "is forty two.",
    ]  # fmt: skip


def test_markup_in_a_result_is_text() -> None:
    output = io.StringIO()
    ChatConsole(file=output, width=200).show_event(tool(result="[bold]x[/bold] [/nonsense]"))
    assert "[bold]x[/bold] [/nonsense]" in output.getvalue()
