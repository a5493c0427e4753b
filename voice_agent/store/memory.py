"""Conversations in memory, bounded: the ones untouched for longest are forgotten."""

from __future__ import annotations

import copy
import itertools
import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voice_agent.store.protocol import (
    LOADED_EVENTS,
    ConversationPage,
    ConversationSummary,
    Record,
    StoredConversation,
    page_size,
)
from voice_agent.store.settings import SettingChange, Value, now

MAX_CHANGES = 1_000
"""Changes of one setting that are remembered."""


@dataclass(slots=True)
class _Entry:
    events: deque[Record]
    caller: str = ""
    started_at: str = ""
    updated_at: str = ""
    number: int = 0
    saved_at: float = 0.0
    last_sequence: int = -1
    state: str | None = None
    """As JSON, as in a database; quicker to make than a deep copy."""
    state_sequence: int | None = None


class MemoryStore:
    """A `ConversationStore` that lives as long as the process.

    Args:
        max_conversations: Beyond this the one appended to longest ago is forgotten.
        max_events: Records kept per conversation, the newest.
        ttl_s: A conversation not appended to for this long is forgotten.
        clock: Seconds that only ever grow.
    """

    def __init__(
        self,
        *,
        max_conversations: int = 10_000,
        max_events: int = 20_000,
        ttl_s: float = 24 * 3600,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_conversations < 1 or max_events < 1 or ttl_s <= 0:
            raise ValueError("the bounds of a store must be positive")
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._max_conversations, self._max_events, self._ttl_s, self._clock = (
            max_conversations,
            max_events,
            ttl_s,
            clock,
        )
        self._numbers = itertools.count(1)
        self._changes: dict[str, deque[SettingChange]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def open(self) -> None:
        """Nothing needs to be made ready."""

    def append(self, conversation_id: str, events: Sequence[Record], state: Mapping[str, Any] | None = None) -> None:
        self._forget_old()
        entry = self._entries.pop(conversation_id, None) or _Entry(deque(maxlen=self._max_events))
        for event in events:
            self._append_one(conversation_id, entry, event)
        entry.saved_at, entry.number = self._clock(), next(self._numbers)
        if state is not None:
            entry.state, entry.state_sequence = json.dumps(state, default=str), entry.last_sequence
        self._entries[conversation_id] = entry
        while len(self._entries) > self._max_conversations:
            self._entries.popitem(last=False)

    @staticmethod
    def _append_one(conversation_id: str, entry: _Entry, event: Record) -> None:
        sequence = event.get("sequence", entry.last_sequence + 1)
        if sequence <= entry.last_sequence:
            id = event.get("event_id")
            if id is not None and any(stored.get("event_id") == id for stored in entry.events):
                return
            sequence = entry.last_sequence + 1
        entry.last_sequence = sequence
        entry.events.append(event if event.get("sequence") == sequence else {**event, "sequence": sequence})
        entry.caller = str(event.get("user_id") or entry.caller or conversation_id)
        entry.updated_at = str(event.get("timestamp", ""))
        entry.started_at = entry.started_at or entry.updated_at

    async def flush(self, timeout_s: float) -> bool:
        return True

    async def load(self, conversation_id: str, *, max_events: int = LOADED_EVENTS) -> StoredConversation | None:
        self._forget_old()
        entry = self._entries.get(conversation_id)
        if entry is None:
            return None
        newest = tuple(itertools.islice(entry.events, max(0, len(entry.events) - max_events), None))
        state = None if entry.state is None else json.loads(entry.state)
        return StoredConversation(newest, state, entry.state_sequence)

    async def events(self, conversation_id: str, *, after: int = -1, limit: int = 200) -> Sequence[Record]:
        entry = self._entries.get(conversation_id)
        found = () if entry is None else (event for event in entry.events if event["sequence"] > after)
        return tuple(itertools.islice(found, page_size(limit)))

    async def conversations(
        self, *, caller: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> ConversationPage:
        before = None if cursor is None else int(cursor)
        found = [
            (entry.number, ConversationSummary(id, entry.caller, entry.started_at, entry.updated_at, len(entry.events)))
            for id, entry in reversed(self._entries.items())
            if (caller is None or entry.caller == caller) and (before is None or entry.number < before)
        ]
        page, more = found[: page_size(limit)], len(found) > page_size(limit)
        return ConversationPage(tuple(summary for _, summary in page), str(page[-1][0]) if more else None)

    async def delete(self, conversation_id: str) -> None:
        self._entries.pop(conversation_id, None)

    async def read_setting(self, name: str) -> Value | None:
        """See `KeepsSettings`."""
        changes = self._changes.get(name)
        return copy.deepcopy(changes[-1].new) if changes else None

    async def write_setting(self, name: str, value: Value, *, who: str) -> None:
        """See `KeepsSettings`."""
        changes = self._changes.setdefault(name, deque(maxlen=MAX_CHANGES))
        old = changes[-1].new if changes else None
        changes.append(SettingChange(name, now(), who, old, copy.deepcopy(value)))

    async def setting_changes(self, name: str, *, limit: int = 100) -> Sequence[SettingChange]:
        """See `KeepsSettings`."""
        return tuple(reversed(self._changes.get(name, ())))[:limit]

    async def aclose(self) -> None:
        self._entries.clear()

    def _forget_old(self) -> None:
        limit = self._clock() - self._ttl_s
        # Appending moves an entry to the young end, so the old ones are all at the front.
        while self._entries and next(iter(self._entries.values())).saved_at < limit:
            self._entries.popitem(last=False)
