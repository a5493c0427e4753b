"""The prompts of recent model calls, in memory: the newest of each conversation, within one size for all."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

from voice_agent.dialogue.model_call import ModelCallRecord
from voice_agent.llm.protocol import Message

MAX_CALLS = 40
"""Model calls kept of one conversation."""
MAX_CHARS = 8_000_000
"""Characters kept over all conversations; the conversation used longest ago goes first."""
MAX_MESSAGE_CHARS = 100_000
"""A longer message is shown cut."""


@dataclass(frozen=True, slots=True)
class _Kept:
    record: ModelCallRecord
    at: str
    size: int


class PromptLog:
    """Keeps what models were given. `take` only holds on to what is there anyway."""

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self._max_chars, self._chars = max_chars, 0
        self._calls: OrderedDict[str, deque[_Kept]] = OrderedDict()

    def take(self, conversation_id: str, record: ModelCallRecord, at: str) -> None:
        """Keep a model call that ended ``at`` (a timestamp)."""
        size = sum(len(message.content) for message in record.request.messages)
        calls = self._calls.setdefault(conversation_id, deque())
        self._calls.move_to_end(conversation_id)
        calls.append(_Kept(record, at, size))
        self._chars += size
        while len(calls) > MAX_CALLS:
            self._chars -= calls.popleft().size
        while self._chars > self._max_chars:
            oldest = next(iter(self._calls))
            self._chars -= self._calls[oldest].popleft().size
            if not self._calls[oldest]:
                del self._calls[oldest]

    def forget(self, conversation_id: str) -> None:
        self._chars -= sum(kept.size for kept in self._calls.pop(conversation_id, ()))

    def of(self, conversation_id: str) -> list[dict[str, Any]]:
        """Return the model calls of a conversation as JSON-ready data, oldest first."""
        return [_told(kept) for kept in self._calls.get(conversation_id, ())]


def _told(kept: _Kept) -> dict[str, Any]:
    record, request = kept.record, kept.record.request
    reply = record.reply
    return {
        "turn_id": record.turn_id.removesuffix(".start"),
        "timestamp": kept.at,
        "purpose": record.purpose,
        "model": record.model,
        "sections": [{"title": s.title or s.key, "tokens": s.tokens, "omitted": s.omitted} for s in record.sections],
        "messages": [_message(message) for message in request.messages],
        "tools": [{"name": t.name, "description": t.description} for t in request.tools],
        "reply": None
        if reply is None
        else {"text": reply.text, "calls": [{"name": c.name, "arguments_json": c.arguments} for c in reply.calls]},
    }


def _message(message: Message) -> dict[str, Any]:
    content = message.content
    cut = f"{content[:MAX_MESSAGE_CHARS]} …" if len(content) > MAX_MESSAGE_CHARS else content
    told: dict[str, Any] = {"role": message.role, "content": cut}
    if message.tool_calls:
        told["calls"] = [{"name": c.name, "arguments_json": c.arguments} for c in message.tool_calls]
    if message.name is not None:
        told["name"] = message.name
    return told
