"""What outlives a call: conversations and their events."""

from voice_agent.store.memory import MemoryStore
from voice_agent.store.protocol import (
    ConversationPage,
    ConversationStore,
    ConversationSummary,
    StoredConversation,
    StoreUnavailable,
)
from voice_agent.store.sqlite import SqliteStore

__all__ = [
    "ConversationPage",
    "ConversationStore",
    "ConversationSummary",
    "MemoryStore",
    "SqliteStore",
    "StoreUnavailable",
    "StoredConversation",
]
