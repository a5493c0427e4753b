"""``voice-agent chat`` beside its project: events as they happen, and files that change while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.small_service import GREETING, write_project
from voice_agent.cli import chat as module
from voice_agent.cli import cli

pytestmark = pytest.mark.models


def test_events_stand_beside_the_talk(tmp_path: Path) -> None:
    root = write_project(tmp_path)
    talk = CliRunner().invoke(cli, ["chat", str(root), "--events", "--ephemeral"], input="hello\n")
    assert talk.exit_code == 0, talk.output
    lines = talk.output.splitlines()
    assert GREETING in lines
    assert any(line.strip().startswith("▸ default_session_start activated") for line in lines)
    quiet = CliRunner().invoke(cli, ["chat", str(root), "--ephemeral"], input="")
    assert quiet.output.strip() == GREETING


def test_a_change_between_two_lines_is_used_and_a_broken_one_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_project(tmp_path)
    (root / "skills/bye").mkdir()
    (root / "skills/bye/skill.md").write_text(
        "---\nname: Bye\ndescription: The caller says goodbye.\nexamples: [goodbye, bye]\n---\n"
        ":::ordered_block id=m\nsteps:\n  - action: utter_hangup_goodbye\n  - execute_tool: hangup\n:::\n"
    )
    greet = "responses:\n  utter_greet: Hi.\n"

    def typing() -> object:
        (root / "responses.yml").write_text("responses:\n  utter_greet: a: b\n")
        yield "hello"
        (root / "responses.yml").write_text(greet + "  utter_hangup_goodbye: Farewell from two.\n")
        yield "goodbye"

    lines = iter(typing())  # type: ignore[call-overload]

    def read(prompt: str = "") -> str:
        return str(next(lines))

    monkeypatch.setattr(module, "input", read, raising=False)
    talk = CliRunner().invoke(cli, ["chat", str(root), "--reload", "--ephemeral"])
    assert talk.exit_code == 0, talk.output
    assert (
        "responses.yml:2" in talk.output and "[yaml.syntax]" in talk.output and "The old version stays." in talk.output
    )
    assert "Farewell from two." in talk.output
