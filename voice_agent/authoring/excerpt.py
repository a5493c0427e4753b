"""The line a problem is about, and the part of it to point at."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from voice_agent.diagnostics import Problem

MAX_COLUMNS = 160
_NAMED = re.compile(r"'([^']+)'|`([^`]+)`|\"([^\"]+)\"|(session\.\w+\.\w+)|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One line of a file. ``start`` and ``end`` are columns of ``text``, from 0."""

    number: int
    text: str
    start: int
    end: int


def excerpt(problem: Problem) -> Excerpt | None:
    """Return the line that ``problem`` stands on; None when there is no such line.

    Points at the last thing that the message names and the line has, else at the whole line.
    """
    if problem.path is None or problem.line is None:
        return None
    lines = _lines(problem.path)
    if not 0 < problem.line <= len(lines):
        return None
    text = lines[problem.line - 1].expandtabs(4).rstrip()[:MAX_COLUMNS]
    if not text.strip():
        return None
    named = [name for names in _NAMED.findall(problem.message) for name in names if name]
    for name in reversed(named):
        found = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)
        if found is not None:
            return Excerpt(problem.line, text, *found.span())
    return Excerpt(problem.line, text, len(text) - len(text.lstrip()), len(text))


@lru_cache(maxsize=64)
def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8-sig", errors="replace").splitlines())
    except OSError:
        return ()
