"""Leaves out problems that only follow from another: a file that cannot be read is reported once."""

from __future__ import annotations

from collections.abc import Sequence

from voice_agent.diagnostics import Problem

_UNREADABLE = ("yaml.syntax", "yaml.too_large", "file.encoding", "file.unreadable")
_BROKEN_TOOLS = ("tool.syntax", "tool.import", "tool.definition")
_OF_MEMORY = ("unknown_reference", "unknown_field", "placeholder", "undeclared_memory_write", "missing_argument")
_OF_RESPONSES = ("unknown_response", "no_utterance", "silent_greeting")
_OF_TOOLS = ("unknown_tool", "unknown_import")
_OF_BLOCKS = ("unknown_block", "skill.empty")


def without_consequences(problems: Sequence[Problem]) -> list[Problem]:
    """Return ``problems`` without those that may vanish once an unreadable file is mended."""
    hidden: tuple[str, ...] = ()
    in_file: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        name = problem.path.name if problem.path else ""
        if problem.id in _UNREADABLE and name == "memory.yml":
            hidden += _OF_MEMORY
        elif problem.id in _UNREADABLE and name == "responses.yml":
            hidden += _OF_RESPONSES
        elif problem.id in _BROKEN_TOOLS:
            hidden += _OF_TOOLS
        elif name == "skill.md" and (problem.id in _UNREADABLE or problem.id == "skill.block.missing_fence"):
            # The block that cannot be read is missing wherever it is named; so may be its steps.
            in_file[str(problem.path)] = _OF_BLOCKS
    kept = []
    for problem in problems:
        local = in_file.get(str(problem.path), ())
        if not problem.id.endswith((*hidden, *local, "\0")):
            kept.append(problem)
    return kept


__all__ = ["without_consequences"]
