"""Requests and chunks in the chat-completions format that model providers share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from voice_agent.llm.protocol import Message, ModelEvent, ModelRequest, TextDelta, ToolCallDelta, ToolSpec

_HALF = re.compile("[\ud800-\udfff]")


def _whole(text: str) -> str:
    """Join the halves of characters that JSON writes as two escapes; replace those that stand alone.

    UTF-8 cannot carry them: one in the history would make every later request of the conversation fail.
    """
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def message_dict(message: Message) -> dict[str, Any]:
    """Return one message as JSON data. Caller text only ever becomes the value of ``content``."""
    data: dict[str, Any] = {"role": message.role, "content": _whole(message.content)}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id or ""
        if message.name:
            data["name"] = message.name
    if message.tool_calls:
        data["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _whole(call.arguments)}}
            for call in message.tool_calls
        ]
    return data


def tool_dict(tool: ToolSpec) -> dict[str, Any]:
    """Return one tool as JSON data."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def request_arguments(request: ModelRequest) -> dict[str, Any]:
    """Return messages and tools as keyword arguments of a chat completion."""
    arguments: dict[str, Any] = {"messages": [message_dict(message) for message in request.messages]}
    if request.tools:
        arguments["tools"] = [tool_dict(tool) for tool in request.tools]
    return arguments


class ChunkReader:
    """Reads the chunks of one stream. Tolerates missing and odd members; such parts are skipped.

    Attributes:
        finish_reason: Set once the provider named one.
    """

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self._half = ""

    def read(self, chunk: Any) -> Iterator[ModelEvent]:
        """Yield the events in one chunk (an object or mapping with ``choices``)."""
        usage = _member(chunk, "usage") or _member(_member(chunk, "_hidden_params"), "usage")
        self.prompt_tokens = _count(_member(usage, "prompt_tokens"), self.prompt_tokens)
        self.completion_tokens = _count(_member(usage, "completion_tokens"), self.completion_tokens)
        choices = _member(chunk, "choices")
        if not isinstance(choices, list) or not choices:
            return
        delta = _member(choices[0], "delta")
        text = _member(delta, "content")
        if isinstance(text, str) and (text := self._join(text)):
            yield TextDelta(text)
        fragments = _member(delta, "tool_calls")
        for position, fragment in enumerate(fragments if isinstance(fragments, list) else ()):
            yield _tool_fragment(fragment, position)
        reason = _member(choices[0], "finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    def _join(self, text: str) -> str:
        """Return ``text`` in whole characters; a first half at its end waits for the next chunk."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return _whole(text[: len(text) - len(self._half)])


def _tool_fragment(fragment: Any, position: int) -> ToolCallDelta:
    function = _member(fragment, "function")
    index = _member(fragment, "index")
    return ToolCallDelta(
        index if isinstance(index, int) else position,
        _text(_member(fragment, "id")),
        _text(_member(function, "name")),
        _text(_member(function, "arguments")) or "",
    )


def _member(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) else otherwise
