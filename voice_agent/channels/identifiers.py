"""Conversation ids as they come from outside."""

from __future__ import annotations

import re
import uuid

MAX_LENGTH = 128
_CONVERSATION_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.:@+-]{{0,{MAX_LENGTH - 1}}}")

RULE = f"1 to {MAX_LENGTH} letters, digits and _ . : @ + -, the first a letter or digit"


def is_conversation_id(text: str) -> bool:
    """Whether ``text`` may name a conversation: it becomes a key, a file name and a log field."""
    return _CONVERSATION_ID.fullmatch(text) is not None


def new_conversation_id() -> str:
    """Return an id that nobody has used or can guess."""
    return uuid.uuid4().hex
