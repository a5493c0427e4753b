"""Reads the files of a project that people write: regular files of a bounded size, in UTF-8."""

from __future__ import annotations

from pathlib import Path

from voice_agent.diagnostics import Problem

MAX_FILE_BYTES = 4 * 2**20
"""More than anybody writes by hand; a bound on what a stray file can cost."""


def read_bytes(path: Path, problems: list[Problem]) -> bytes | None:
    """Return what ``path`` holds; None, and a problem, when it cannot be read."""
    try:
        if not path.is_file():
            # Opening a pipe or a device would wait for whoever writes to it.
            problems.append(_unreadable(path, _what_it_is(path)))
            return None
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        problems.append(_unreadable(path, fault.strerror or str(fault)))
        return None
    if len(content) > MAX_FILE_BYTES:
        message = f"Larger than {MAX_FILE_BYTES // 2**20} MiB."
        problems.append(Problem("file.too_large", message, "Split the file, or move it out of the project.", path))
        return None
    return content


def read_text(path: Path, problems: list[Problem], *, errors: str = "strict") -> str | None:
    """Return the text of ``path`` without its byte order mark; None, and a problem, when it cannot be read.

    Args:
        errors: As of `bytes.decode`; ``replace`` makes the best of a file that is not UTF-8.
    """
    content = read_bytes(path, problems)
    if content is None:
        return None
    try:
        return content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        problems.append(Problem("file.encoding", f"Not UTF-8: {fault.reason}.", "Save the file as UTF-8.", path, line))
        return None


def _what_it_is(path: Path) -> str:
    if path.is_dir():
        return "it is a directory"
    return "it is no regular file" if path.exists() else "it leads nowhere" if path.is_symlink() else "it is not there"


def _unreadable(path: Path, why: str) -> Problem:
    remedy = "Check what it is and its permissions, or remove it."
    return Problem("file.unreadable", f"Cannot be read: {why}.", remedy, path)
