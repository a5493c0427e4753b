"""Tracker events as short lines for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.dialogue.events import payload_of

MAX_CHARS = 300
_SILENT = frozenset(
    ("user", "bot", "turn_started", "mcp_tool_executed", "session_ended", "ordered_block_started",
     "ordered_block_completed", "turn_timeline")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``kind``: caller, agent, tool, failure, memory, skill, clock, note."""

    kind: str
    text: str


class EventLines:
    """Describes the events of one conversation, keeping track of the stack of skills."""

    def __init__(self) -> None:
        self._stack: list[str] = []

    def line(self, event: Mapping[str, Any]) -> Line | None:
        """Return what to show of ``event``; None for what the talk itself shows."""
        kind, payload = payload_of(event)
        if kind in _SILENT:
            return None
        if kind == "tool_executed":
            shown = f"{tool_run(payload)} → {payload.get('result_json', '')}"
            return Line("tool" if payload.get("success") else "failure", shown[:MAX_CHARS])
        if kind == "memory_set":
            entry = f"{payload.get('namespace')}.{payload.get('key')}"
            return Line("memory", f"{entry} = {payload.get('value_json')} ({payload.get('source')})"[:MAX_CHARS])
        if kind.startswith("skill_"):
            return self._skill(kind.removeprefix("skill_"), str(payload.get("skill", "")), payload)
        if kind == "turn_finished":
            status = payload.get("status")
            return None if status == "completed" else Line("note", f"turn {status}")
        details = ", ".join(f"{k}={v}" for k, v in payload.items() if k != "turn_id")
        return Line("note", f"{kind} {details}".strip()[:MAX_CHARS])

    def _skill(self, what: str, skill: str, payload: Mapping[str, Any]) -> Line:
        if what in ("activated", "resumed"):
            self._stack = [*(s for s in self._stack if s != skill), skill]
        elif what in ("completed", "cancelled"):
            self._stack = [s for s in self._stack if s != skill]
        why = f" ({payload['reason']})" if payload.get("reason") else ""
        return Line("skill", f"{skill} {what}{why}   [{' › '.join(self._stack) or 'no skill is open'}]")


def tool_run(payload: Mapping[str, Any]) -> str:
    """Return the call of a ``tool_executed`` record as it would be written in Python."""
    arguments = parsed(payload.get("arguments_json"))
    given = ", ".join(f"{k}={v!r}" for k, v in arguments.items()) if isinstance(arguments, dict) else ""
    return f"{payload.get('tool')}({given})" + ("" if payload.get("success") else " failed")


def parsed(text: Any) -> Any:
    """Return the value of a ``*_json`` field; the text itself where it is none."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text
