"""What a store of conversations must do. Records and state are JSON-ready data; their meaning is the dialogue's.

A store knows five fields of a record's envelope: ``sequence``, ``event_id``, ``timestamp``, ``user_id``
and ``conversation_id``. A record may lack any of them, as old flat rows (``{"event": …}``) do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Record = Mapping[str, Any]

LOADED_EVENTS = 2_000
"""Newest records that `ConversationStore.load` returns unless told otherwise: some two hundred turns."""
MAX_PAGE = 1_000
"""Most items a page of a query has."""


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation as it was last appended to.

    Attributes:
        events: The newest records, oldest first; each has its ``sequence``.
        state: Snapshot of what it was in the middle of; None if none was stored.
        state_sequence: The last record that the snapshot includes; None without one.
    """

    events: Sequence[Record] = field(default_factory=tuple)
    state: Mapping[str, Any] | None = None
    state_sequence: int | None = None


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """One line of a list of conversations.

    Attributes:
        caller: The ``user_id`` of its records; the conversation's own id where the channel knew none.
        started_at: Timestamp of its first record, as the record has it.
        updated_at: Timestamp of its newest record.
        events: How many records are kept.
    """

    id: str
    caller: str
    started_at: str
    updated_at: str
    events: int


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """A page of conversations, the one appended to last first.

    Attributes:
        next: Cursor of the page after this; None on the last one.
    """

    conversations: Sequence[ConversationSummary]
    next: str | None = None


class StoreUnavailable(Exception):
    """The store could not do what was asked of it, now."""


class ConversationStore(Protocol):
    """Keeps conversations beyond a call. Used from one event loop, by many conversations at once."""

    async def open(self) -> None:
        """Make ready; called once before anything is loaded. Idempotent.

        Raises:
            RemediableError: The place cannot be used; says why and what to do.
        """
        ...

    def append(self, conversation_id: str, events: Sequence[Record], state: Mapping[str, Any] | None = None) -> None:
        """Take records, and the state after the last of them, to be made durable very soon.

        Never waits for a disk or a network and never fails for their faults: what cannot be written
        now is kept, within bounds, and tried again. Records and the state of one call become durable
        together or not at all. A record stored before under its ``event_id`` is not stored again; a
        ``sequence`` that another record has is replaced by a later one. The caller must not change
        ``events`` afterwards; ``state`` is used at once.
        """
        ...

    async def flush(self, timeout_s: float) -> bool:
        """Wait until everything appended so far is durable. Returns False when it could not be made so in time."""
        ...

    async def load(self, conversation_id: str, *, max_events: int = LOADED_EVENTS) -> StoredConversation | None:
        """Return a conversation with its newest ``max_events`` records; None if it is unknown or forgotten.

        Includes what was appended and is not durable yet.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        ...

    async def events(self, conversation_id: str, *, after: int = -1, limit: int = 200) -> Sequence[Record]:
        """Return a page of records: those numbered above ``after``, oldest first, at most ``limit``.

        Raises:
            StoreUnavailable: They cannot be read now.
        """
        ...

    async def conversations(
        self, *, caller: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> ConversationPage:
        """Return a page of conversations, of one caller if asked.

        Args:
            cursor: ``next`` of the page before.

        Raises:
            ValueError: Not a cursor of this store.
            StoreUnavailable: They cannot be read now.
        """
        ...

    async def delete(self, conversation_id: str) -> None:
        """Forget a conversation, for good. Unknown ids are fine.

        Raises:
            StoreUnavailable: It may still be there.
        """
        ...

    async def aclose(self) -> None:
        """Make durable what can be, within seconds, and release files and connections. Idempotent."""
        ...


def page_size(limit: int) -> int:
    """Return ``limit`` within what one page may have."""
    return max(1, min(limit, MAX_PAGE))
