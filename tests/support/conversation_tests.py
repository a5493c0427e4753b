"""A small project with one bookable service, and a way to play conversation tests against it."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.support.dialogue_projects import block, skill, write_project
from voice_agent.authoring.player import Outcome
from voice_agent.authoring.suite import collect, find_suites

TOOLS = """\
import asyncio
from datetime import date, datetime

from lib import calendar_book
from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Book a slot.")
async def book_slot(day: str, context: ToolContext = None) -> ToolResult:
    await asyncio.sleep(0.05)
    context.memory.set("reference", "B-17")
    return ToolResult(llm_response={"ok": True, "day": day, "reference": "B-17"})


@tool(description="What day it is.")
async def today(context: ToolContext = None) -> ToolResult:
    known = isinstance(datetime(2020, 1, 1), date)
    return ToolResult(llm_response={"today": str(date.today()), "now": f"{datetime.now():%H:%M}",
                                    "lib": calendar_book.this_year(), "known": known})
"""
FILES: Mapping[str, str] = {
    "agent.yml": "agent:\n  id: test\n  persona: You book.\n",
    "memory.yml": "reference: {type: text}\ncaller: {type: text, seed: true}\n",
    "responses.yml": (
        "responses:\n  utter_greet: Welcome to the booking line.\n  utter_ask_day: Which day suits you?\n"
        "  utter_booked: Your reference is {reference}. You may change the day until the evening before it.\n"
    ),
    "skills/default_session_start/skill.md": skill(
        block("- id: greet\n  action: utter_greet"), routing="{engine_managed: true}"
    ),
    "skills/book/skill.md": skill(
        block(
            "- id: ask\n  collect: day\n  utterance: utter_ask_day\n- id: book\n  execute_tool: book_slot\n"
            "- id: tell\n  action: utter_booked"
        ),
        name="Booking",
        description="The caller wants to book.",
    ),
    "skills/book/memory.yml": "schema:\n  public:\n    day: {type: text}\n",
    "skills/book/tools.py": TOOLS,
    "skills/clock/skill.md": skill("Say what day it is.\n", name="Clock", description="The caller asks for the day."),
    "skills/clock/tools.py": TOOLS,
    "lib/calendar_book.py": "import datetime\nimport time\n\n\ndef this_year():\n"
    "    return [datetime.datetime.now().year, time.gmtime(time.time()).tm_year]\n",
}


def play(
    root: Path, tests: str, *, live: bool = False, wanted: str = "", files: Mapping[str, str] = FILES
) -> list[Outcome]:
    """Write the project with ``tests`` (the YAML below ``conversations:``) and play them."""
    write_project(root, files)
    path = root / "tests" / "all.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("conversations:\n" + textwrap.indent(textwrap.dedent(tests).strip("\n"), "  ") + "\n")
    return asyncio.run(collect(find_suites([root], wanted=wanted, live=live), live=live))


def play_one(root: Path, steps: str, **options: str) -> Outcome:
    """Play one test with these ``steps`` (a YAML list) and options of the test."""
    head = "".join(f"  {key}: {value}\n" for key, value in options.items())
    body = textwrap.indent(textwrap.dedent(steps).strip("\n"), "    ")
    (outcome,) = play(root, f"- name: it\n{head}  steps:\n{body}\n")
    return outcome
