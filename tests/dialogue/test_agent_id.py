"""An agent without an id gets one that stays; nothing else of its file changes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.dialogue_projects import caller, skill
from voice_agent.diagnostics import Severity
from voice_agent.dialogue.agent_id import keep_id, new_id

NOW = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_an_id_is_the_moment_and_two_words() -> None:
    assert re.fullmatch(r"20310203-040506-[a-z]+-[a-z]+", new_id(NOW))


@pytest.mark.parametrize(
    "text",
    [
        "agent:\n  persona: Calm.\n",
        "# top\nrules: [x]\nagent: # who\n\n    # comment\n    persona: Calm.\n    name: N\n",
        "agent:\r\n  persona: Calm.\r\n",
    ],
)
def test_it_is_written_as_the_first_line_of_its_section_and_the_rest_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "agent.yml"
    path.write_bytes(text.encode())
    made, problem = keep_id(path, NOW)
    written = path.read_bytes().decode()
    line = re.search(rf"^[ ]+id: {made}\r?\n", written, re.MULTILINE)
    assert line is not None
    assert written.replace(line.group(0), "") == text
    assert (problem.severity, problem.line) == (Severity.WARNING, written[: line.start()].count("\n") + 1)


def test_a_file_that_cannot_be_written_costs_a_warning_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "agent.yml"
    path.write_text("agent: {persona: Calm.}\n", encoding="utf-8")
    made, problem = keep_id(path, NOW)
    assert made in problem.message
    assert "could not be written" in problem.message
    assert path.read_text(encoding="utf-8") == "agent: {persona: Calm.}\n"


def test_loading_twice_gives_the_same_id(tmp_path: Path) -> None:
    files = {"agent.yml": "agent:\n  persona: Calm.\n", "skills/a/skill.md": skill("Talk.")}
    first = caller(tmp_path, files).agent
    second = caller(tmp_path, {**files, "agent.yml": (tmp_path / "agent.yml").read_text(encoding="utf-8")}).agent
    assert first.config.agent.agent.id == second.config.agent.agent.id != ""
    assert [p.id for p in first.problems] == ["agent.id"]
    assert second.problems == ()
