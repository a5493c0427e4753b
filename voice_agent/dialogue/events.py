"""The tracker: an append-only log of what happened in a conversation.

Each record is an envelope with exactly one payload key (nested ProtoJSON, snake_case)::

    {"conversation_id": "c1", "sequence": 7, "timestamp": "2025-01-01T12:00:00.000Z", "event_id": "…",
     "session_id": "s1", "tool_executed": {"tool": "get_x", "arguments_json": "{}", "success": true, …}}

Values whose shape is not ours travel as JSON text in fields named ``*_json``.
"""

from __future__ import annotations

import itertools
import json
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

log = logging.getLogger(__name__)

MAX_EVENTS = 20_000
"""Records kept in memory per conversation; the store keeps them all."""

SIGNS_OF_PRESENCE = ("backchannel", "utterance_lost", "utterance_discarded")
"""Kinds of notes that say that the caller was heard, though no turn came of it: they are there."""

ENVELOPE = frozenset(
    (
        "conversation_id",
        "timestamp",
        "event_id",
        "sequence",
        "user_id",
        "deployment_environment",
        "session_id",
        "metadata",
    )
)

Clock = Callable[[], datetime]
Listener = Callable[[Mapping[str, Any]], None]


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_json(value: Any) -> str:
    """Return ``value`` as JSON text; what JSON has no form for is written as its ``str``."""
    return json.dumps(value, ensure_ascii=False, default=str)


def payload_of(event: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return (kind, payload) of a record; old flat rows (``{"event": kind, …}``) are read too."""
    if "event" in event:
        return str(event["event"]), {k: v for k, v in event.items() if k != "event" and k not in ENVELOPE}
    for key, value in event.items():
        if key not in ENVELOPE:
            return key, value if isinstance(value, Mapping) else {}
    return "", {}


class EventLog:
    """One conversation's tracker. Records are numbered from 0 in the order in which they were appended.

    Attributes:
        user_id: Who the caller is to the application; the conversation's id stands in while nobody has said.
        environment: Where the application runs.
    """

    def __init__(self, conversation_id: str, clock: Clock, *, user_id: str = "", environment: str = "") -> None:
        self.conversation_id, self.session_id, self.turn_id = conversation_id, "", ""
        self._clock = clock
        self.user_id, self.environment = user_id, environment
        self._events: deque[dict[str, Any]] = deque(maxlen=MAX_EVENTS)
        self._unsaved: list[dict[str, Any]] = []
        self._sequence = 0
        self._listeners: list[Listener] = []

    @property
    def events(self) -> Sequence[dict[str, Any]]:
        return tuple(self._events)

    def recent(self, limit: int) -> list[dict[str, Any]]:
        """Return the newest ``limit`` records, oldest first."""
        newest = list(itertools.islice(reversed(self._events), limit))
        newest.reverse()
        return newest

    def append(self, kind: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Record one event and tell the listeners; a listener that raises is logged and kept.

        During a turn the payload gets its ``turn_id``, unless it brings one.
        """
        fields = dict(payload or {})
        if self.turn_id:
            fields.setdefault("turn_id", self.turn_id)
        moment = self._clock().astimezone(UTC)
        event: dict[str, Any] = {
            "conversation_id": self.conversation_id,
            "sequence": self._sequence,
            "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z",
            "event_id": uuid.uuid4().hex,
            "session_id": self.session_id,
            "user_id": self.user_id or self.conversation_id,
            "deployment_environment": self.environment,
            kind: fields,
        }
        self._sequence += 1
        self._events.append(event)
        self._unsaved.append(event)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                log.exception("a listener to events of conversation %s failed", self.conversation_id)
        return event

    def on_event(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with each new record. Returns an unsubscriber."""
        self._listeners.append(listener)

        def forget() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return forget

    def take_unsaved(self) -> list[dict[str, Any]]:
        """Return the records since the last call, for the store."""
        taken, self._unsaved = self._unsaved, []
        return taken

    def restore(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take over stored records in front of those already appended, which are renumbered after them."""
        added = list(self._events)
        self._events.clear()
        for event in events:
            self._events.append(dict(event))
        if self._events and not self.user_id:
            # The channel that the caller has come back by may not know who they are; an earlier one did.
            self.user_id = str(self._events[-1].get("user_id") or "")
        self._sequence = 1 + max((int(e.get("sequence", -1)) for e in self._events), default=-1)
        for event in added:
            event["sequence"] = self._sequence
            self._sequence += 1
            self._events.append(event)
