"""YAML that knows its lines: the same from both readers, true to YAML 1.2, and bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from voice_agent import yaml_source
from voice_agent.yaml_source import LocatedMap, YamlFile, line_of

TEXT = """\
# A comment
a: yes
b: [1, 2.5, 12:30, 2030-05-06, on, ~]
c: &shared
  d: true
  e: |
    two
    lines
f:
  <<: *shared
  g: "x: y"
"""
VALUE = {
    "a": "yes",
    "b": [1, 2.5, "12:30", "2030-05-06", "on", None],
    "c": {"d": True, "e": "two\nlines\n"},
    "f": {"d": True, "e": "two\nlines\n", "g": "x: y"},
}


def read(text: str, **options: Any) -> YamlFile:
    return YamlFile(text, Path("x.yml"), **options)


@pytest.fixture(params=["fast", "plain"])
def _both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = yaml_source._loaders[:1] if request.param == "fast" else yaml_source._loaders[-1:]
    monkeypatch.setattr(yaml_source, "_loaders", wanted)


@pytest.mark.usefixtures("_both")
def test_values_and_lines_are_the_same_from_both_readers() -> None:
    file = read(TEXT, first_line=10)
    assert (file.value, file.problems) == (VALUE, [])
    lines = [line_of(file.value, where) for where in (["a"], ["b", 2], ["c", "e"], ["f", "g"], ["f", "nowhere"])]
    assert lines == [11, 12, 15, 20, 18]


@pytest.mark.usefixtures("_both")
def test_a_key_twice_and_a_key_that_is_no_word_are_problems_with_lines() -> None:
    file = read("a: 1\nb: 2\na: 3\n[x]: 4\n")
    assert [(p.id, p.line) for p in file.problems] == [("yaml.duplicate_key", 3), ("yaml.key", 4)]
    assert file.value == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("a: b: c\n", 1, "must be quoted"),
        ("a:\n\tb: c\n", 2, "not tabs"),
        ("a: [1, 2\nb: 3\n", 2, ""),
        ("a: {b: c, d: [e?}\n", 1, ""),
        ("a: *nowhere\n", 1, ""),
    ],
)
def test_what_is_no_yaml_is_one_problem_with_its_line(text: str, line: int, remedy: str) -> None:
    (problem,) = read(text).problems
    assert (problem.id, problem.line) == ("yaml.syntax", line)
    assert remedy in problem.remedy


@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, "[" * 100_000, "a: " + "{b: " * 5000])
def test_deep_nesting_ends_as_a_problem(text: str) -> None:
    (problem,) = read(text).problems
    assert problem.id in ("yaml.too_large", "yaml.syntax")


def test_aliases_that_multiply_are_bounded() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    (problem,) = read(bomb).problems
    assert problem.id == "yaml.too_large"


def test_merge_keys_that_multiply_are_bounded() -> None:
    bomb = "a0: &a0 {k: v}\n"
    bomb += "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 9))
    (problem,) = read(bomb).problems
    assert problem.id == "yaml.too_large"


def test_own_keys_win_over_merged_ones_and_the_first_merged_over_the_next() -> None:
    file = read("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc:\n  <<: [*a, *b]\n  y: 3\n")
    assert file.problems == []
    assert file.value["c"] == {"x": 1, "y": 3, "z": 2}
    assert file.value["c"].key_lines == {"y": 5, "x": 1, "z": 2}


@pytest.mark.parametrize("text", ["a: {<<: 3}\n", "a:\n  <<: [{b: c}, d]\n"])
def test_a_merge_of_what_is_no_mapping_is_a_problem(text: str) -> None:
    (problem,) = read(text).problems
    assert (problem.id, problem.line) == ("yaml.merge", text.count("\n"))


@pytest.mark.parametrize(
    ("value", "id"),
    [
        ("!!int abc", "yaml.value"),
        ("!!float abc", "yaml.value"),
        ("!!bool maybe", "yaml.value"),
        ("9" * 5000, "yaml.value"),
        ("0x" + "f" * 5000, "yaml.value"),
        ("!!binary '####'", "yaml.tag"),
        ("!!timestamp nope", "yaml.tag"),
        ("!!timestamp 2020-99-99", "yaml.tag"),
        ("!mine x", "yaml.tag"),
    ],
)
def test_a_value_that_its_tag_does_not_fit_is_a_problem_with_its_line(value: str, id: str) -> None:
    file = read(f"a: 1\nb: {value}\n")
    (problem,) = file.problems
    assert (problem.id, problem.line, file.value["b"]) == (id, 2, None)
    assert problem.remedy


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_no_value_and_no_problem(text: str) -> None:
    file = read(text)
    assert (file.value, file.problems) == (None, [])


def test_a_mapping_knows_its_own_line() -> None:
    value = read("a:\n  b:\n    c: 1\n").value
    assert isinstance(value["a"]["b"], LocatedMap)
    assert value["a"]["b"].line == 3
