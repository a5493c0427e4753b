"""What outlives a call: conversations and their events."""

from voice_agent.store.memory import MemoryStore
from voice_agent.store.protocol import ConversationStore, StoredConversation

__all__ = ["ConversationStore", "MemoryStore", "StoredConversation"]
