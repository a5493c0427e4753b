"""``voice-agent test`` as an author meets it: statuses, transcripts, JSON, JUnit."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from tests.support.conversation_tests import FILES
from tests.support.dialogue_projects import write_project
from voice_agent.cli import cli

GOOD = """\
conversations:
  - name: A caller is greeted
    tags: [greeting]
    steps:
      - expect: {said: Welcome}
"""
BAD = """\
conversations:
  - name: A caller is asked
    steps:
      - say: book
        model: [{start_skill: {skill: book}}]
        expect: {said: {equals: "Which week suits you?"}}
  - name: Not yet
    skip: waiting for the calendar
    steps: [{say: x}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, {**FILES, "tests/good.yml": GOOD, "tests/bad.yml": BAD})
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["test", *(str(argument) for argument in arguments)])


def test_a_failure_shows_transcript_line_and_difference_and_ends_with_1(project: Path) -> None:
    result = run(project)
    assert result.exit_code == 1
    shown = result.output
    assert "✓ A caller is greeted" in shown and "✗ A caller is asked" in shown
    assert "– Not yet  waiting for the calendar" in shown
    assert "│  caller book" in shown and "│   agent Which day suits you?  [utter_ask_day]" in shown
    assert "tests/bad.yml:6  said" in shown
    assert "expected  exactly 'Which week suits you?'" in shown and "got       “Which day suits you?”" in shown
    assert shown.rstrip().endswith("1 passed, 1 failed, 1 skipped")


def test_all_that_pass_end_with_0(project: Path) -> None:
    result = run(project / "tests" / "good.yml")
    assert (result.exit_code, "1 passed" in result.output) == (0, True)
    assert run(project, "--filter", "GREETING").exit_code == 0


def test_a_stub_that_fails_as_it_is_told_is_no_error_in_the_log(project: Path) -> None:
    stubbed = """\
    conversations:
      - name: The calendar is down
        stubs: {book_slot: {error: service down}}
        steps:
          - say: book
            model: [{start_skill: {skill: book}}]
          - say: Monday
            model: [{set_fields: {day: Monday}}]
            expect: {ran: [{tool: book_slot, failed: true}]}
    """
    (project / "tests" / "stubbed.yml").write_text(textwrap.dedent(stubbed))
    result = run(project / "tests" / "stubbed.yml")
    assert (result.exit_code, "1 passed" in result.output) == (0, True), result.output
    assert "Traceback" not in result.output and "service down" not in result.output


def test_json_holds_everything_and_nothing_else_is_printed(project: Path) -> None:
    result = run(project, "--json")
    data = json.loads(result.stdout)
    assert (data["passed"], data["failed"], data["skipped"], result.exit_code) == (1, 1, 1, 1)
    failing = next(test for test in data["tests"] if test["status"] == "failed")
    assert (failing["name"], failing["line"]) == ("A caller is asked", 2)
    assert failing["failures"][0]["line"] == 6
    assert {"kind": "caller", "text": "book"} in failing["transcript"]


def test_junit_is_written_for_ci(project: Path) -> None:
    file = project / "out" / "results.xml"
    run(project, "--junit", file)
    suites = {Path(s.get("name", "")).name: s for s in ElementTree.parse(file).getroot()}
    assert {name: (s.get("tests"), s.get("failures"), s.get("skipped")) for name, s in suites.items()} == {
        "good.yml": ("1", "0", "0"), "bad.yml": ("2", "1", "1"),
    }  # fmt: skip
    failure = suites["bad.yml"].find("testcase/failure")
    assert failure is not None and "Which week" in failure.get("message", "")
    assert "agent: Which day suits you?" in (failure.text or "")


def test_text_that_xml_has_no_form_for_is_left_out(project: Path) -> None:
    (project / "tests/odd.yml").write_text(
        'conversations:\n  - name: odd\n    steps:\n      - say: hello\n        model: ["a\\u0007 <b> & c"]\n'
        "        expect: {said: z}\n"
    )
    file = project / "results.xml"
    run(project / "tests/odd.yml", "--junit", file)
    assert "a <b> & c" in (ElementTree.parse(file).getroot().findtext(".//failure") or "")


def test_what_cannot_be_read_ends_with_2_and_says_where(project: Path) -> None:
    (project / "tests/bad.yml").write_text("conversations:\n  - nam: x\n")
    result = run(project)
    assert result.exit_code == 2
    assert "bad.yml:2" in result.output and "Did you mean 'name'?" in result.output


def test_a_broken_project_ends_with_2_and_the_problems_that_check_shows(project: Path) -> None:
    (project / "responses.yml").write_text("responses:\n  utter_greet: a: b\n")
    result = run(project)
    assert (result.exit_code, "responses.yml:2" in result.output) == (2, True)


def test_no_tests_at_all_is_said(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    assert (run(tmp_path).exit_code, "no conversation tests" in run(tmp_path).output) == (2, True)
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    assert "No test matches 'zzz'" in run(write_and_return(tmp_path), "--filter", "zzz").output


def write_and_return(root: Path) -> Path:
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests/good.yml").write_text(textwrap.dedent(GOOD))
    return root
