"""The command line as a user meets it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from voice_agent import __version__
from voice_agent.cli import cli

PROJECT = """\
agent:
  persona: You answer.
"""


def voice_agent(*arguments: str, text: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "voice_agent", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


SKILL = """\
---
name: Session start
description: Greet.
routing: {engine_managed: true}
---
:::ordered_block id=main
steps:
  - id: greet
    action: utter_greet
:::
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        {
            "agent.yml": PROJECT,
            "integrations.yml": "llm: {provider: embedded}\n",
            "responses.yml": "responses:\n  utter_greet:\n    - text: Welcome to the test.\n",
            "skills/default_session_start/skill.md": SKILL,
        },
    )


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom voice_agent.cli import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        "heavy = {'fastapi', 'uvicorn', 'numpy', 'pydantic', 'rich', 'litellm', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for command in ("run", "chat", "call", "new", "schema", "test", "prompt", "check"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        *([name, "-h"] for name in ("run", "chat", "call", "new", "schema", "test", "prompt", "check")),
    ],
)
def test_every_command_has_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.output


def test_version() -> None:
    assert CliRunner().invoke(cli, ["--version"]).output.strip().endswith(__version__)


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["sing"])
    assert result.exit_code == 2
    assert "No such command" in result.output


@pytest.mark.parametrize("command", ["run", "chat", "check"])
def test_a_project_that_is_not_there_is_one_clear_error(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, [command, str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "nowhere" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["run", "chat"])
def test_a_directory_without_a_project_names_the_missing_files_and_ends_with_2(command: str, tmp_path: Path) -> None:
    done = voice_agent(command, str(tmp_path))
    assert done.returncode == 2
    assert "agent.yml" in done.stderr
    assert "integrations.yml" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_key_names_its_variable(project: Path) -> None:
    (project / "integrations.yml").write_text("llm: {provider: openai, model: gpt-4o, api_key_env: NO_SUCH_KEY}\n")
    done = voice_agent("chat", str(project))
    assert done.returncode == 2
    assert "integrations.yml:1: error: " in done.stderr
    assert "NO_SUCH_KEY" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_check_reports_every_problem_with_file_and_line(project: Path) -> None:
    (project / "integrations.yml").write_text("llm: {provider: embedded}\nserver:\n  port: many\n")
    broken = SKILL.replace("utter_greet", "utter_gret")
    write(project, {"skills/default_session_start/skill.md": broken, "skills/second/skill.md": "no front matter"})
    done = voice_agent("check", str(project))
    assert done.returncode == 1
    assert "integrations.yml:3" in done.stdout
    assert "utter_gret" in done.stdout
    assert "second/skill.md" in done.stdout


def test_chat_greets_and_ends_with_its_input(project: Path) -> None:
    done = voice_agent("chat", str(project), text="")
    assert done.returncode == 0
    assert done.stdout.strip() == "Welcome to the test."


def test_chat_refuses_a_conversation_name_that_cannot_be_one(project: Path) -> None:
    done = voice_agent("chat", str(project), "--conversation", "../x")
    assert done.returncode == 2
    assert "--conversation" in done.stderr
