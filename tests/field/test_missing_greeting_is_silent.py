"""The welcome message was empty, so callers heard nothing, and nobody was told.

Right: a session start that says nothing is named when the project is loaded, and a response without
text is an error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dialogue_projects import block, skill, write_project
from voice_agent.diagnostics import Severity
from voice_agent.dialogue.loader import load_project

START = "skills/default_session_start/skill.md"


def test_a_session_start_that_says_nothing_is_a_warning(tmp_path: Path) -> None:
    files = {START: skill(block("- id: a\n  noop: true\n  next: END"), routing="{engine_managed: true}")}
    _, problems = load_project(write_project(tmp_path, files))
    assert [(p.id, p.severity) for p in problems] == [("skill.silent_greeting", Severity.WARNING)]


@pytest.mark.parametrize("wording", ["", "''", "'  '", "[]", "[{text: }]", "[{text: ''}]", "null"])
def test_a_greeting_without_text_is_an_error_with_its_line(tmp_path: Path, wording: str) -> None:
    files = {
        START: skill(block("- action: utter_greet"), routing="{engine_managed: true}"),
        "skills/default_session_start/responses.yml": f"responses:\n  utter_greet: {wording}\n",
    }
    _, problems = load_project(write_project(tmp_path, files))
    errors = [p for p in problems if p.severity is Severity.ERROR and p.path and p.path.name == "responses.yml"]
    assert errors
    assert errors[0].line == 2


def test_a_greeting_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    files = {START: skill(block("- action: utter_greet"), routing="{engine_managed: true}")}
    _, problems = load_project(write_project(tmp_path, files))
    assert "skill.unknown_response" in {p.id for p in problems}
