"""Leaves out problems that only follow from another: a file that cannot be read is reported once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from voice_agent.diagnostics import Problem

_UNREADABLE = ("yaml.syntax", "yaml.too_large", "file.encoding", "file.unreadable", "file.too_large")
_BROKEN_TOOLS = ("tool.syntax", "tool.import", "tool.definition", "plugin.syntax", "plugin.import")
_OF_MEMORY = ("unknown_reference", "unknown_field", "placeholder", "undeclared_memory_write", "missing_argument")
_OF_RESPONSES = ("unknown_response", "no_utterance", "silent_greeting")
_OF_TOOLS = ("skill.unknown_tool", "skill.unknown_import")
_OF_BLOCKS = ("unknown_block", "skill.empty")


def without_consequences(problems: Sequence[Problem]) -> list[Problem]:
    """Return ``problems`` without those that may vanish once an unreadable file is mended."""
    hidden: tuple[str, ...] = ()
    tools: set[str] = set()
    in_file: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        name = problem.path.name if problem.path else ""
        if problem.id in _UNREADABLE and name == "memory.yml":
            hidden += _OF_MEMORY
        elif problem.id in _UNREADABLE and name == "responses.yml":
            hidden += _OF_RESPONSES
        elif problem.id in _BROKEN_TOOLS and problem.path is not None:
            tools |= _functions(problem.path)
        elif name == "skill.md" and (problem.id in _UNREADABLE or problem.id == "skill.block.missing_fence"):
            # The block that cannot be read is missing wherever it is named; so may be its steps.
            in_file[str(problem.path)] = _OF_BLOCKS
    kept = []
    for problem in problems:
        local = in_file.get(str(problem.path), ())
        if problem.id.endswith((*hidden, *local, "\0")):
            continue
        if problem.id in _OF_TOOLS and any(repr(name) in problem.message for name in tools):
            continue
        kept.append(problem)
    return kept


def _functions(path: Path) -> set[str]:
    """Return the names that a file which cannot be imported would have defined."""
    try:
        return set(re.findall(r"^(?:async )?def (\w+)", path.read_text(encoding="utf-8-sig"), re.MULTILINE))
    except (OSError, UnicodeDecodeError):
        return set()
