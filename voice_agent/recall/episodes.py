"""From the tracker's records to exchanges worth keeping. Pure.

An exchange is what the caller said in a turn and what they heard of the reply. Left out: keys pressed, turns that
were superseded, and turns in which a value of a field marked ``pii: true`` was written down.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from voice_agent.recall.entries import Episode, Who

MAX_OPEN = 2_000
"""Turns whose reply has not been heard yet, of all conversations; the oldest is given up."""
MAX_CHARS = 1_000
"""Of each side of an exchange."""
KINDS = frozenset(("user", "bot", "turn_superseded", "memory_set"))


@dataclass(slots=True)
class _Open:
    who: Who
    moment: float
    said: str
    is_private: bool = False


class Exchanges:
    """Puts exchanges together out of records as they come, of many conversations at once."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, str], _Open] = OrderedDict()

    def add(self, event: Mapping[str, Any]) -> Episode | None:
        """Take a record; return the exchange that it completes, if any."""
        kind = next((key for key in KINDS if key in event), None)
        payload = event.get(kind) if kind is not None else None
        if not isinstance(payload, Mapping):
            return None
        conversation, turn = str(event.get("conversation_id", "")), str(payload.get("turn_id", ""))
        key = conversation, turn
        if kind == "user":
            said = str(payload.get("text", "")).strip()
            if payload.get("kind") in ("speech", "text") and said and turn:
                self._begin(key, _Open(who_of(event), _moment(event), said[:MAX_CHARS]))
            return None
        found = self._open.get(key)
        if found is None:
            return None
        if kind == "turn_superseded":
            del self._open[key]
        elif kind == "memory_set":
            found.is_private = found.is_private or bool(payload.get("pii"))
        else:
            del self._open[key]
            if not found.is_private:
                # Known by now, perhaps, though not when the caller began to speak.
                answered = str(payload.get("text", "")).strip()[:MAX_CHARS]
                return Episode(who_of(event), turn, found.moment, found.said, answered)
        return None

    def _begin(self, key: tuple[str, str], found: _Open) -> None:
        self._open[key] = found
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)


def who_of(event: Mapping[str, Any]) -> Who:
    """Return whose record it is. Where nobody has said who the caller is, the id stands in: that is no caller."""
    conversation, caller = str(event.get("conversation_id", "")), str(event.get("user_id", ""))
    return Who("" if caller == conversation else caller, conversation)


def _moment(event: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(event.get("timestamp", ""))).timestamp()
    except ValueError:
        return 0.0
