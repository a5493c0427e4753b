"""`voice-agent check` on a collection of broken projects: every problem, nothing else, each on its line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.authoring.broken_projects import BROKEN, SOUND, Broken
from tests.support.dialogue_projects import write_project
from voice_agent.authoring.problem_catalogue import find
from voice_agent.cli import cli
from voice_agent.diagnostics import Severity


def _write(root: Path, broken: Broken) -> Path:
    write_project(root, {**SOUND, **broken.files})
    for name in broken.removed:
        (root / name).unlink()
    return root


def test_the_sound_project_behind_them_has_no_problem(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["check", str(write_project(tmp_path, SOUND))])
    assert (result.exit_code, result.output) == (0, "no problems\n")


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.title)
def test_each_problem_is_found_on_its_line_and_nothing_else_is_said(broken: Broken, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["check", str(_write(tmp_path, broken)), "--json"])
    found = json.loads(result.stdout)
    assert {(p["file"] or "", p["line"], p["id"]) for p in found} == broken.expected
    assert broken.says in " ".join(f"{p['message']} {p['remedy']}" for p in found)
    errors = any(p["severity"] == Severity.ERROR.value for p in found)
    assert result.exit_code == (1 if errors else 0)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.title)
def test_each_is_shown_with_its_line_and_a_pointer_to_it(broken: Broken, tmp_path: Path) -> None:
    output = CliRunner().invoke(cli, ["check", str(_write(tmp_path, broken))]).output
    assert "Traceback" not in output
    for file, line, id in broken.expected:
        assert f"[{id}]" in output
        assert (f"{file}:{line}  " if line else file) in output
        if line is None:
            continue
        source = (tmp_path / file).read_text().splitlines()[line - 1]
        shown = re.search(rf"^ +{line} │ (.*)\n +│ ( *\^+)$", output, re.MULTILINE)
        if source.strip():
            assert shown is not None
            assert shown.group(1) == source.expandtabs(4)
            assert len(shown.group(2)) <= len(shown.group(1))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.title)
def test_each_problem_is_in_the_catalogue(broken: Broken) -> None:
    assert all(find(id) is not None for _, _, id in broken.expected)


def test_all_problems_of_many_files_come_at_once(tmp_path: Path) -> None:
    chosen = [b for b in BROKEN if b.title in ("a rule with a colon", "a placeholder without a field",
                                               "a field of no type", "a response that is not there")]  # fmt: skip
    files = {name: text for broken in chosen for name, text in broken.files.items()}
    files["skills/a/skill.md"] = next(b for b in chosen if "skills/a/skill.md" in b.files).files["skills/a/skill.md"]
    result = CliRunner().invoke(cli, ["check", str(write_project(tmp_path, {**SOUND, **files})), "--json"])
    assert {p["id"] for p in json.loads(result.stdout)} >= {
        "config.rule_is_mapping", "responses.placeholder", "memory.field_type"
    }  # fmt: skip
    assert result.exit_code == 1


def test_a_directory_that_is_no_project_is_said_to_be_none_and_nothing_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["check", str(tmp_path), "--json"])
    (problem,) = json.loads(result.stdout)
    assert problem["id"] == "project.missing"
    assert f"{tmp_path} is no project" in problem["message"]
    assert "voice-agent new" in problem["remedy"]


def test_speech_models_that_are_not_there_are_found_before_the_service_starts(tmp_path: Path) -> None:
    settings = "speech: {stt: {model: bse}, tts: {voice: ./no.onnx}}\n"
    root = write_project(tmp_path, {**SOUND, "integrations.yml": settings})
    found = json.loads(CliRunner().invoke(cli, ["check", str(root), "--json"]).stdout)
    assert [p["id"] for p in found] == ["engine.unavailable"] * 2
    assert all(wrong in str(found) for wrong in ("'bse'", "no.onnx"))
    (root / "integrations.yml").write_text(settings + "channels: {websocket: {enabled: false}}\n")
    assert CliRunner().invoke(cli, ["check", str(root)]).output == "no problems\n"
