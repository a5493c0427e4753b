"""From the records of a conversation to what happened in it: calls, turns with their times, memory.

The same for a call that is going on and for one of last month: both are read from records alone.
Pure: no clock, no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from voice_agent.dialogue.events import payload_of

Record = Mapping[str, Any]
Payload = Mapping[str, Any]
_START = ".start"
_TIMES_OF = ("turn_id", "call_id", "pauses")


def account(records: Iterable[Record], fields: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``{calls, turns, notes, memory, outcome, session_ended}``.

    Args:
        records: Oldest first.
        fields: What the project declares of each (namespace, name): ``type``, ``public``, ``pii``, ``description``.

    Each turn is ``{id, call_id, number, sequence, timestamp, status, reason, superseded, user, heard, unheard,
    interrupted, times, pauses, tools}``; times are seconds since the call began, by text since the words came. The
    ``seconds`` of a tool are those from the turn's beginning to its result. Entries of ``memory`` that are
    not ``current`` were forgotten: their skill began anew or ended, or the session is over.
    """
    teller = _Account(fields)
    for record in records:
        kind, payload = payload_of(record)
        handle = getattr(teller, f"on_{kind}", None)
        if handle is not None:
            handle(record, payload)
    return {
        "calls": list(teller.calls.values()),
        "turns": list(teller.turns.values()),
        "notes": teller.notes,
        "memory": list(teller.memory.values()),
        "outcome": teller.outcome,
        "session_ended": teller.session_ended,
    }


def outcome_of(records: Iterable[Record]) -> dict[str, Any]:
    """Return ``{outcome, reason, seconds}`` of the last call or session, as far as these newest records tell."""
    found: dict[str, Any] = {"outcome": None, "reason": None, "seconds": None}
    for record in records:
        kind, payload = payload_of(record)
        if kind == "call_ended":
            found = {key: payload.get(key) for key in found}
        elif kind in ("call_started", "turn_started"):
            found = dict.fromkeys(found)
        elif kind == "session_ended" and found["outcome"] is None:
            found["outcome"] = payload.get("outcome")
    return found


def _between(began: Any, ended: Any) -> float | None:
    """Return the seconds between two timestamps; None where one is missing."""
    try:
        return round((datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(began))).total_seconds(), 3)
    except (ValueError, TypeError):
        return None


class _Account:
    def __init__(self, fields: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        self._fields = fields
        self.calls: dict[str, dict[str, Any]] = {}
        self.turns: dict[str, dict[str, Any]] = {}
        self.notes: list[dict[str, Any]] = []
        self.memory: dict[tuple[str, str], dict[str, Any]] = {}
        self.outcome: str | None = None
        self.session_ended = False
        self._call: str | None = None

    def _turn(self, record: Record, payload: Payload) -> dict[str, Any]:
        turn_id = str(payload.get("turn_id", "")).removesuffix(_START)
        return self.turns.setdefault(
            turn_id,
            {
                "id": turn_id,
                "call_id": self._call,
                "number": None,
                "sequence": record.get("sequence"),
                "timestamp": record.get("timestamp"),
                "status": "running",
                "reason": None,
                "superseded": False,
                "user": None,
                "heard": "",
                "unheard": "",
                "interrupted": False,
                "times": {},
                "pauses": [],
                "tools": [],
            },
        )

    # --- calls ---------------------------------------------------------------------------------

    def on_call_started(self, record: Record, payload: Payload) -> None:
        call_id = str(payload.get("call_id", ""))
        self._call, self.outcome, self.session_ended = call_id, None, False
        self.calls[call_id] = {
            "id": call_id,
            "channel": payload.get("channel"),
            "resumed": bool(payload.get("resumed")),
            "started_at": record.get("timestamp"),
            "recording": payload.get("recording"),
            "recording_whole": None,
            "seconds": None,
            "outcome": None,
            "reason": None,
        }

    def on_call_ended(self, record: Record, payload: Payload) -> None:
        call = self.calls.get(str(payload.get("call_id", "")))
        if call is not None:
            call.update({key: payload.get(key) for key in ("seconds", "outcome", "reason", "recording_whole")})
        self.outcome, self._call = payload.get("outcome"), None

    # --- turns ---------------------------------------------------------------------------------

    def on_turn_started(self, record: Record, payload: Payload) -> None:
        turn = self._turn(record, payload)
        turn["number"] = payload.get("number")

    def on_user(self, record: Record, payload: Payload) -> None:
        turn = self._turn(record, payload)
        if payload.get("kind") != "intent" or turn["user"] is None:
            turn["user"] = {"text": payload.get("text", ""), "kind": payload.get("kind", "text")}

    def on_tool_executed(self, record: Record, payload: Payload) -> None:
        if payload.get("turn_id"):
            tool = {"tool": payload.get("tool"), "success": bool(payload.get("success")), "step": payload.get("step")}
            turn = self._turn(record, payload)
            turn["tools"].append({**tool, "seconds": _between(turn["timestamp"], record.get("timestamp"))})

    def on_turn_finished(self, record: Record, payload: Payload) -> None:
        turn = self._turn(record, payload)
        turn.update(status=payload.get("status", "completed"), reason=payload.get("reason"))

    def on_turn_superseded(self, record: Record, payload: Payload) -> None:
        self._turn(record, payload)["superseded"] = True

    def on_bot(self, record: Record, payload: Payload) -> None:
        self._turn(record, payload).update(
            heard=payload.get("text", ""),
            unheard=payload.get("unheard", ""),
            interrupted=bool(payload.get("interrupted")),
        )

    def on_reply_unheard(self, record: Record, payload: Payload) -> None:
        self._turn(record, payload)["unheard"] = payload.get("text", "")

    def on_reply_owed(self, record: Record, payload: Payload) -> None:
        turn = self._turn(record, payload)
        turn["unheard"] = f"{turn['unheard']} {payload.get('text', '')}".strip()

    def on_line(self, record: Record, payload: Payload) -> None:
        if payload.get("turn_id"):
            turn = self._turn(record, payload)
            turn.update(heard=payload.get("heard", ""), unheard=payload.get("unheard", ""), status="completed")
            turn["user"] = {"text": str(payload.get("name", "")), "kind": "line"}

    def on_turn_timeline(self, record: Record, payload: Payload) -> None:
        turn = self._turn(record, payload)
        turn["call_id"] = payload.get("call_id")
        turn["times"] = {name: value for name, value in payload.items() if name not in _TIMES_OF}
        turn["pauses"] = payload.get("pauses", [])

    def on_backchannel(self, record: Record, payload: Payload) -> None:
        note = {"kind": "backchannel", "text": payload.get("text", ""), "turn_id": payload.get("turn_id")}
        self.notes.append({**note, "sequence": record.get("sequence"), "timestamp": record.get("timestamp")})

    # --- sessions and memory -------------------------------------------------------------------

    def on_session_started(self, record: Record, payload: Payload) -> None:
        self.memory.clear()
        self.session_ended = False

    def on_session_ended(self, record: Record, payload: Payload) -> None:
        self._forget(lambda entry: True)
        self.session_ended = True
        self.outcome = self.outcome or payload.get("outcome")

    def on_memory_set(self, record: Record, payload: Payload) -> None:
        key = (str(payload.get("namespace", "")), str(payload.get("key", "")))
        declared = self._fields.get(key, {})
        try:
            value = json.loads(str(payload.get("value_json", "null")))
        except ValueError:
            value = None
        self.memory.pop(key, None)
        self.memory[key] = {
            "namespace": key[0],
            "key": key[1],
            "value": value,
            "type": declared.get("type"),
            "public": bool(declared.get("public", True)),
            "pii": bool(payload.get("pii") or declared.get("pii")),
            "source": payload.get("source"),
            "turn_id": payload.get("turn_id"),
            "sequence": record.get("sequence"),
            "current": value is not None,
        }

    def on_skill_activated(self, record: Record, payload: Payload) -> None:
        self._forget(lambda entry: entry["namespace"] == payload.get("skill"))

    def on_skill_completed(self, record: Record, payload: Payload) -> None:
        self._forget(lambda entry: entry["namespace"] == payload.get("skill") and not entry["public"])

    on_skill_cancelled = on_skill_completed

    def _forget(self, which: Any) -> None:
        for entry in self.memory.values():
            if which(entry):
                entry["current"] = False
