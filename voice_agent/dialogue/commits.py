"""What became of replies: each turn's is recorded once, as it was heard."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from voice_agent.dialogue.events import EventLog
from voice_agent.dialogue.reply import HeardReply

MAX_REMEMBERED_TURNS = 256


class Commits:
    """Records replies; the first word on a turn's reply counts."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._known: OrderedDict[str, None] = OrderedDict()

    def go_on_from(self, old: Commits) -> None:
        """Know what ``old`` has recorded."""
        self._known = old._known

    def record(self, turn_id: str, reply: HeardReply) -> bool:
        """Record what was heard of a turn's reply; False if that was done before."""
        if turn_id in self._known:
            return False
        self._known[turn_id] = None
        while len(self._known) > MAX_REMEMBERED_TURNS:
            self._known.popitem(last=False)
        heard, unheard = reply.heard.strip(), reply.unheard.strip()
        context = {} if reply.context is None else {"context": reply.context.strip()}
        if heard:
            payload: dict[str, Any] = {"turn_id": turn_id, "text": heard, "interrupted": bool(unheard)}
            if unheard:
                payload["unheard"] = unheard
            self._events.append("bot", payload | context)
        elif unheard:
            self._events.append("reply_unheard", {"turn_id": turn_id, "text": unheard, **context})
        return True
