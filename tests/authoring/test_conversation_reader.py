"""Reading conversation tests: every fault with its line, short and long spellings, defaults of a file."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from voice_agent.authoring.conversation_reader import LocatedTest, find_files, project_of, read_tests
from voice_agent.diagnostics import Problem, RemediableError


def read(folder: Path, text: str) -> tuple[list[LocatedTest], list[Problem]]:
    path = folder / "tests.yml"
    path.write_text(textwrap.dedent(text).lstrip())
    problems: list[Problem] = []
    return read_tests(path, problems), problems


def test_a_file_s_defaults_reach_its_tests_unless_they_say_otherwise(tmp_path: Path) -> None:
    tests, problems = read(
        tmp_path,
        """
        channel: text
        now: 2030-05-06
        stubs: {a: {result: 1}, b: {result: 1}}
        conversations:
          - {name: one, steps: [{say: x}], stubs: {b: {result: 2}}}
          - {name: two, channel: rest, now: 2031-01-01 10:00, steps: [{say: x}]}
        """,
    )
    assert problems == []
    one, two = (located.test for located in tests)
    assert (one.channel, two.channel) == ("text", "rest")
    assert one.now is not None and two.now is not None
    assert (one.now.isoformat(), two.now.isoformat()) == ("2030-05-06T00:00:00+00:00", "2031-01-01T10:00:00+00:00")
    assert {name: stub[0].result for name, stub in one.stubs.items()} == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{}", "does nothing"),
        ("{say: a, dtmf: '1'}", "does say and dtmf at once"),
        ("{hang_up: true, model: [x]}", "belong to a step in which the caller speaks"),
        ("{say: a, interrupt: {}}", "needs either `during`"),
        ("{say: a, interrupt: {during: x, after_words: 1}}", "needs either `during`"),
        ("{say: a, expect: {said: {contains: a, equals: b}}}", "needs exactly one of"),
        ("{say: a, expect: {said: {matches: '('}}}", "no regular expression"),
        ("{say: a, expect: {status: done}}", "'completed', 'cancelled' or 'error'"),
        ("{wait: soon}", "write a number and s, min, h or days"),
        ("{dtmf: hello}", "pattern"),
        ("{intent: /restart}", "/silence"),
        ("{say: a, model: [{pay: now}]}", "the arguments of 'pay' must be a mapping"),
        ("{say: a, stubs: {x: {resul: 1}}}", "Did you mean 'result'?"),
        ("{say: a, expct: {}}", "Did you mean 'expect'?"),
        ("{say: a, expect: {skill: {finished: x}}}", "has no key 'finished'"),
    ],
)
def test_an_impossible_step_is_one_problem_on_its_line(step: str, problem: str, tmp_path: Path) -> None:
    tests, problems = read(tmp_path, f"conversations:\n  - name: x\n    steps:\n      - say: fine\n      - {step}\n")
    assert tests == []
    (found,) = problems
    assert found.line == 5
    assert problem in f"{found.message} {found.remedy}"


def test_names_are_unique_waiting_needs_a_clock_and_a_live_test_has_no_script(tmp_path: Path) -> None:
    _, problems = read(
        tmp_path, "conversations:\n  - {name: x, steps: [{wait: 5 s}]}\n  - {name: x, steps: [{say: y}]}\n"
    )
    assert [(p.id, p.line) for p in problems] == [
        ("conversation.wait_without_now", 2), ("conversation.duplicate_name", 3),
    ]  # fmt: skip
    _, problems = read(tmp_path, "conversations:\n  - {name: x, model: live, steps: [{say: y, model: [z]}]}\n")
    assert "keep one of them" in problems[0].message


@pytest.mark.parametrize(
    ("text", "seconds"), [("90 min", 5400), ("1.5 h", 5400), ("2 days", 172_800), ("30s", 30), ("1 hour", 3600)]
)
def test_spans_of_time_are_written_as_people_write_them(text: str, seconds: float, tmp_path: Path) -> None:
    (located,), _ = read(tmp_path, f"conversations:\n  - {{name: x, now: 2030-01-01, steps: [{{wait: {text}}}]}}\n")
    wait = located.test.steps[0].wait
    assert wait is not None and wait.total_seconds() == seconds


def test_only_files_that_hold_conversations_are_looked_at(tmp_path: Path) -> None:
    for name, text in {"tests/a.yml": "conversations: []\n", "tests/data.yml": "rows: []\n", "other/b.yml": "x: 1\n",
                       "conversations/deep/c.yaml": "# ours\nconversations: []\n"}.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [str(p.relative_to(tmp_path)) for p in find_files(tmp_path)] == ["conversations/deep/c.yaml", "tests/a.yml"]


def test_a_file_belongs_to_the_project_above_it(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/a.yml").write_text("conversations: []\n")
    with pytest.raises(RemediableError, match="belongs to no project"):
        project_of(tmp_path / "tests/a.yml")
    (tmp_path / "agent.yml").write_text("agent: {persona: x}\n")
    assert project_of(tmp_path / "tests/a.yml") == tmp_path.resolve()
