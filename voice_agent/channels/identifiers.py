"""Conversation ids as they come from outside."""

from __future__ import annotations

import re
import uuid

from voice_agent.channels.tokens import Grant

MAX_LENGTH = 128
_CONVERSATION_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.:@+-]{{0,{MAX_LENGTH - 1}}}")

RULE = f"1 to {MAX_LENGTH} letters, digits and _ . : @ + -, the first a letter or digit"


def is_conversation_id(text: str) -> bool:
    """Whether ``text`` may name a conversation: it becomes a key, a file name and a log field."""
    return _CONVERSATION_ID.fullmatch(text) is not None


def chosen(asked: object, grant: Grant | None = None) -> str | None:
    """Return the conversation that a caller is put through to; None where what they asked for cannot be.

    Args:
        asked: The id from outside, if any; a new one is made where there is none.
        grant: What the caller's token stands for, if they have one: no other conversation than its own.
    """
    if grant is not None:
        return grant.conversation_id if asked in (None, "", grant.conversation_id) else None
    if asked in (None, ""):
        return new_conversation_id()
    return asked if isinstance(asked, str) and is_conversation_id(asked) else None


def new_conversation_id() -> str:
    """Return an id that nobody has used or can guess."""
    return uuid.uuid4().hex
