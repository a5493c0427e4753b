"""Conversations in memory, bounded: the ones untouched for longest are forgotten."""

from __future__ import annotations

import copy
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voice_agent.store.protocol import StoredConversation


@dataclass(slots=True)
class _Entry:
    events: deque[Mapping[str, Any]]
    saved_at: float
    state: Mapping[str, Any] | None = field(default=None)


class MemoryStore:
    """A `ConversationStore` that lives as long as the process.

    Args:
        max_conversations: Beyond this the one saved longest ago is forgotten.
        max_events: Records kept per conversation, the newest.
        ttl_s: A conversation not saved for this long is forgotten.
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

    def __len__(self) -> int:
        return len(self._entries)

    async def load(self, conversation_id: str) -> StoredConversation | None:
        self._forget_old()
        entry = self._entries.get(conversation_id)
        return None if entry is None else StoredConversation(tuple(entry.events), copy.deepcopy(entry.state))

    async def save(
        self, conversation_id: str, events: Sequence[Mapping[str, Any]], state: Mapping[str, Any] | None
    ) -> None:
        self._forget_old()
        entry = self._entries.pop(conversation_id, None)
        if entry is None:
            entry = _Entry(deque(maxlen=self._max_events), 0.0)
        entry.events.extend(events)
        entry.saved_at = self._clock()
        if state is not None:
            entry.state = copy.deepcopy(state)
        self._entries[conversation_id] = entry
        while len(self._entries) > self._max_conversations:
            self._entries.popitem(last=False)

    async def delete(self, conversation_id: str) -> None:
        self._entries.pop(conversation_id, None)

    async def aclose(self) -> None:
        self._entries.clear()

    def _forget_old(self) -> None:
        limit = self._clock() - self._ttl_s
        # Saving moves an entry to the young end, so the old ones are all at the front.
        while self._entries and next(iter(self._entries.values())).saved_at < limit:
            self._entries.popitem(last=False)
