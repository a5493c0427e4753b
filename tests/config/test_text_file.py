"""A project's files are read within bounds, and what cannot be read is a problem with its reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from voice_agent.diagnostics import Problem
from voice_agent.text_file import MAX_FILE_BYTES, read_text


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", "gr\u00fc\u00dfe".encode()])
def test_text_comes_without_its_byte_order_mark(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    problems: list[Problem] = []
    assert (read_text(tmp_path / "a", problems), problems) == ("gr\u00fc\u00dfe", [])


def test_another_encoding_is_named_with_its_line_or_made_the_best_of(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo \xff\n")
    problems: list[Problem] = []
    assert read_text(path, problems) is None
    assert [(p.id, p.line) for p in problems] == [("file.encoding", 2)]
    assert read_text(path, problems, errors="replace") == "one\ntwo \ufffd\n"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


def _nowhere(path: Path) -> None:
    path.symlink_to("none")


@pytest.mark.parametrize(
    ("make", "why"),
    [(_pipe, "no regular file"), (Path.mkdir, "directory"), (_circle, "leads nowhere"), (_nowhere, "leads nowhere")],
)
def test_what_is_no_file_is_a_problem_and_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    make(tmp_path / "a")
    problems: list[Problem] = []
    assert read_text(tmp_path / "a", problems) is None
    assert [p.id for p in problems] == ["file.unreadable"]
    assert why in problems[0].message
    assert problems[0].remedy


def test_a_file_too_large_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    problems: list[Problem] = []
    assert read_text(path, problems) is None
    assert [p.id for p in problems] == ["file.too_large"]
