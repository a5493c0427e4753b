"""What has been appended and is not written yet: bounded, shared by the event loop and the writer.

append ──▶ waiting ──take──▶ taken ──done──▶ gone
                 ◀─put_back──┘        a failed write comes back, in front of what came meanwhile

The lock is held only to move references about, so the event loop never waits for a disk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from voice_agent.store.protocol import Record

ENVELOPE_BYTES = 400
"""What a record takes beside the text in it, roughly."""


@dataclass(slots=True)
class Batch:
    """What waits for one conversation.

    Attributes:
        state: The newest snapshot, as JSON; None if none came.
        state_sequence: The last record that ``state`` includes.
        delete_first: What is stored of the conversation goes before this is written.
        alone: Nothing came but snapshots: of a conversation that is stored already, or was deleted since.
        ticket: Number of the oldest append in here.
        size: Estimated bytes of ``events``.
    """

    ticket: int
    events: deque[Record] = field(default_factory=deque)
    state: str | None = None
    state_sequence: int = -1
    delete_first: bool = False
    alone: bool = True
    size: int = 0

    def add(self, events: Iterable[Record], size: int, state: str | None) -> None:
        """Put newer things behind what is here; ``state`` includes all of them."""
        before = len(self.events)
        self.events.extend(events)
        self.alone = self.alone and len(self.events) == before
        self.size += size
        if state is not None:
            self.state = state
            self.state_sequence = self.events[-1].get("sequence", -1) if self.events else -1

    def absorb(self, newer: Batch) -> None:
        """Put a newer batch behind this."""
        last_included = newer.state_sequence if newer.events else None
        self.alone = self.alone and newer.alone
        self.add(newer.events, newer.size, newer.state)
        if newer.state is not None and last_included is not None:
            self.state_sequence = last_included


def estimated_size(event: Record) -> int:
    """Return roughly how many bytes a record takes."""
    return ENVELOPE_BYTES + sum(
        len(text)
        for value in event.values()
        if isinstance(value, Mapping)
        for text in value.values()
        if isinstance(text, str)
    )


class Backlog:
    """Batches by conversation, oldest first.

    Args:
        max_events: Records kept over all conversations; beyond it the oldest are dropped.
        max_bytes: The same by estimated size.
    """

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._max_events, self._max_bytes = max_events, max_bytes
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, Batch] = OrderedDict()
        self._taken: OrderedDict[str, Batch] = OrderedDict()
        self._events = self._bytes = 0
        self._last_ticket = 0
        self._idle = self._woken = False
        self._dropped = 0

    def __len__(self) -> int:
        """Number of records that are not written yet."""
        return self._events

    @property
    def dropped(self) -> int:
        """Number of records given up so far because there were too many."""
        return self._dropped

    @property
    def last_ticket(self) -> int:
        """Number of the newest append."""
        return self._last_ticket

    def append(self, conversation_id: str, events: Sequence[Record], state: str | None) -> None:
        size = sum(map(estimated_size, events))
        with self._changed:
            batch = self._batch(conversation_id)
            batch.add(events, size, state)
            self._events += len(events)
            self._bytes += size
            self._make_room()
            if self._idle:
                self._changed.notify_all()

    def delete(self, conversation_id: str) -> None:
        """Have the conversation deleted, and drop what waits of it."""
        with self._changed:
            batch = self._batch(conversation_id)
            self._forget(batch)
            batch.delete_first = True
            self._changed.notify_all()

    def _batch(self, conversation_id: str) -> Batch:
        self._last_ticket += 1
        batch = self._waiting.get(conversation_id)
        if batch is None:
            batch = self._waiting[conversation_id] = Batch(self._last_ticket)
        return batch

    def _forget(self, batch: Batch) -> None:
        self._events -= len(batch.events)
        self._bytes -= batch.size
        batch.events.clear()
        batch.state, batch.size, batch.alone = None, 0, True

    def _make_room(self) -> None:
        if self._events <= self._max_events and self._bytes <= self._max_bytes:
            return
        for batch in self._waiting.values():
            while batch.events:
                if self._events <= self._max_events and self._bytes <= self._max_bytes:
                    return
                size = estimated_size(batch.events.popleft())
                batch.size -= size
                self._bytes -= size
                self._events -= 1
                self._dropped += 1

    def wait(self, timeout_s: float) -> bool:
        """Block until something waits, `wake` is called, or time is up. Returns whether something waits."""
        with self._changed:
            if not self._waiting and not self._woken:
                self._idle = True
                self._changed.wait(timeout_s)
                self._idle = False
            if self._waiting:
                # A call to `wake` still holds for the next wait.
                return True
            self._woken = False
            return False

    def wake(self) -> None:
        """End the present `wait`, or the next one."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def take(self, max_events: int) -> Mapping[str, Batch]:
        """Take the oldest batches, whole, up to about ``max_events`` records. One taker at a time."""
        with self._changed:
            count = 0
            while self._waiting and (not count or count < max_events):
                conversation_id, batch = self._waiting.popitem(last=False)
                self._taken[conversation_id] = batch
                count += max(1, len(batch.events))
            return self._taken

    def done(self, conversation_ids: Iterable[str] | None = None) -> None:
        """What was taken, or these conversations of it, is written."""
        with self._changed:
            for conversation_id in list(self._taken) if conversation_ids is None else conversation_ids:
                self._forget(self._taken.pop(conversation_id))

    def put_back(self) -> None:
        """What was taken could not be written."""
        with self._changed:
            newer, self._waiting, self._taken = self._waiting, self._taken, OrderedDict()
            for conversation_id, batch in newer.items():
                older = self._waiting.get(conversation_id)
                if older is None:
                    self._waiting[conversation_id] = batch
                elif batch.delete_first:
                    self._forget(older)
                    batch.ticket = older.ticket
                    self._waiting[conversation_id] = batch
                else:
                    older.absorb(batch)
            self._make_room()

    def settled(self) -> int:
        """Return the newest ticket up to which everything has been written."""
        with self._changed:
            tickets = [batch.ticket for held in (self._taken, self._waiting) for batch in held.values()]
            return min(tickets, default=self._last_ticket + 1) - 1

    def unwritten(self, conversation_id: str) -> Batch | None:
        """Return a copy of all that is not written of a conversation; None if everything is."""
        with self._changed:
            found = [held[conversation_id] for held in (self._taken, self._waiting) if conversation_id in held]
            if not found:
                return None
            merged = Batch(found[0].ticket)
            for batch in found:
                if batch.delete_first:
                    merged = Batch(batch.ticket, delete_first=True)
                merged.absorb(batch)
            return merged
