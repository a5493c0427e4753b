"""What a store of conversations must do. Records and state are JSON-ready data; their meaning is the dialogue's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation as it was last saved.

    Attributes:
        events: Tracker records, oldest first.
        state: Snapshot of what it was in the middle of; None if none was saved.
    """

    events: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    state: Mapping[str, Any] | None = None


class ConversationStore(Protocol):
    """Keeps conversations beyond a call. Safe to use from many conversations at once."""

    async def load(self, conversation_id: str) -> StoredConversation | None:
        """Return a conversation; None if it is unknown or has been forgotten."""
        ...

    async def save(
        self, conversation_id: str, events: Sequence[Mapping[str, Any]], state: Mapping[str, Any] | None
    ) -> None:
        """Append ``events`` and replace the state (None keeps the last one), both or neither."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Forget a conversation. Unknown ids are fine."""
        ...

    async def aclose(self) -> None:
        """Release files and connections. Idempotent."""
        ...
