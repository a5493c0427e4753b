"""`voice-agent new`: what it makes is sound, runs, and passes its own tests; it never overwrites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from voice_agent.cli import cli


def voice_agent(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    result = voice_agent("new", "front-desk", "--path", tmp_path)
    assert result.exit_code == 0, result.output
    return tmp_path / "front-desk"


def test_a_new_project_has_no_problem(project: Path) -> None:
    assert voice_agent("check", project).output == "no problems\n"


def test_a_new_project_passes_its_scripted_test(project: Path) -> None:
    result = voice_agent("test", project, "--filter", "leaves a message")
    assert (result.exit_code, "1 passed" in result.output) == (0, True), result.output


@pytest.mark.models
def test_a_new_project_passes_all_its_tests_with_the_embedded_model(project: Path) -> None:
    result = voice_agent("test", project)
    assert (result.exit_code, "2 passed" in result.output) == (0, True), result.output


def test_a_new_skill_fits_into_the_project_and_passes_its_test(project: Path) -> None:
    made = voice_agent("new", "skill", "change_address", "--path", project)
    assert made.exit_code == 0
    assert voice_agent("check", project).output == "no problems\n"
    result = voice_agent("test", project / "tests" / "change_address.yml")
    assert (result.exit_code, "1 passed" in result.output) == (0, True), result.output


def test_every_file_leads_editors_to_a_schema_that_is_there(project: Path) -> None:
    voice_agent("new", "skill", "change_address", "--path", project)
    files = list(project.rglob("*.yml"))
    assert len(files) >= 8
    for path in files:
        found = re.search(r"\$schema=(\S+)", path.read_text())
        assert found is not None, path
        assert (path.parent / found.group(1)).resolve().is_file(), path


def test_a_skill_of_a_project_without_schemas_has_no_line_for_editors(project: Path) -> None:
    agent = project / "agent.yml"
    agent.write_text(agent.read_text().split("\n", 1)[1])
    voice_agent("new", "skill", "change_address", "--path", project)
    assert (project / "skills/change_address/memory.yml").read_text().startswith("schema:")


def test_nothing_is_overwritten(project: Path) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    again = voice_agent("new", "front-desk", "--path", project.parent)
    skill = voice_agent("new", "skill", "leave_message", "--path", project)
    assert (again.exit_code, skill.exit_code) == (2, 2)
    assert "exists already" in again.output and "exists already" in skill.output
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["9lives", "a/../b", "über", "x" * 61, "with space"])
def test_a_name_that_cannot_be_a_project_is_refused(name: str, tmp_path: Path) -> None:
    result = voice_agent("new", name, "--path", tmp_path)
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("id", ["Change", "class", "project", "../x", "a-b", "default_completed", "x" * 61])
def test_an_id_that_cannot_be_a_skill_is_refused(id: str, project: Path) -> None:
    before = sorted(project.rglob("*"))
    result = voice_agent("new", "skill", id, "--path", project)
    assert (result.exit_code, sorted(project.rglob("*"))) == (2, before)


def test_a_skill_needs_a_project_and_an_id(tmp_path: Path) -> None:
    assert "is no project" in voice_agent("new", "skill", "x", "--path", tmp_path).output
    assert "needs an id" in voice_agent("new", "skill").output
    assert "new skill change_address" in voice_agent("new", "skil", "change_address").output


@pytest.mark.models
@pytest.mark.parametrize("asked", ["what are your hours", "When are you open?", "when do you open"])
def test_a_new_project_answers_when_it_is_open(project: Path, asked: str) -> None:
    result = CliRunner().invoke(cli, ["chat", str(project), "--ephemeral"], input=f"{asked}\n")
    assert "nine in the morning" in result.output


def test_recordings_of_callers_are_kept_out_of_version_control(project: Path) -> None:
    assert "recordings/" in (project / ".gitignore").read_text().splitlines()
