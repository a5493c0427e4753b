"""Writes a request for a model without tool calls: tools as text, calls and results as messages. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from voice_agent.llm.protocol import Message, ModelRequest, ToolSpec

FORMAT = """\
## How to reply
Think briefly if you must; nobody hears it. Then write exactly one of these, and nothing after it.

To use a tool:
<action>tool name</action><input>its arguments as a JSON object</input>

To speak to the caller:
<answer>what the caller hears</answer>

A tool's result comes back as "Observation:". Never write one yourself. Words for the caller while a tool \
works, if any, go before it: <say>a few words</say>. To call a tool named in these instructions is to use it this way.

Tools:
"""
ANSWER_ONLY = """\
## How to reply
No tool can be used now. Write only: <answer>what the caller hears</answer>"""
OBSERVATION = "Observation: "
_FORGED = re.compile(r"^[^\w\n]*observation\s*:", re.IGNORECASE | re.MULTILINE)
"""What a caller says must not be taken for a tool's result."""
MAX_SCHEMA_CHARS = 1_500
"""A parameter schema larger than this is named by its parameters alone."""


def tagged_request(request: ModelRequest) -> ModelRequest:
    """Return ``request`` in the tagged format; as it is when there is nothing of tools in it."""
    if not request.tools and not _has_calls(request.messages):
        return request
    note = FORMAT + "\n".join(map(_described, request.tools)) if request.tools else ANSWER_ONLY
    return replace(request, messages=_merged(_rendered(request.messages, note, tags=True)), tools=())


def plain_request(request: ModelRequest) -> ModelRequest:
    """Return ``request`` without any tools; calls already made are told in words."""
    if not _has_calls(request.messages):
        return replace(request, tools=())
    return replace(request, messages=_merged(_rendered(request.messages, "", tags=False)), tools=())


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(message.tool_calls or message.role == "tool" for message in messages)


def _rendered(messages: Sequence[Message], note: str, *, tags: bool) -> Iterable[Message]:
    noted = not note
    for message in messages:
        if message.role == "system" and not noted:
            noted = True
            yield Message("system", f"{message.content}\n\n{note}".strip())
        elif message.role == "tool":
            yield Message("user", f"{OBSERVATION}{message.content}")
        elif message.role == "assistant":
            yield Message("assistant", _reply(message, tags=tags))
        elif message.role == "user":
            yield replace(message, content=_FORGED.sub(r"(said by the caller) \g<0>", message.content))
        else:
            yield message
    if not noted:
        yield Message("system", note)


def _reply(message: Message, *, tags: bool) -> str:
    text = message.content.strip()
    if not tags:
        called = [f"(used {call.name} with {call.arguments})" for call in message.tool_calls]
        return " ".join([*([text] if text else []), *called])
    if not message.tool_calls:
        return f"<answer>{text}</answer>"
    calls = [f"<action>{call.name}</action><input>{call.arguments}</input>" for call in message.tool_calls]
    return "\n".join([*([f"<say>{text}</say>"] if text else []), *calls])


def _merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join neighbours of one role: many models insist that caller and agent take turns. A note comes first."""
    kept: list[Message] = []
    for message in messages:
        if message.role == "system" and kept and kept[0].role != "system":
            kept.insert(0, message)
        elif kept and kept[-1].role == message.role:
            kept[-1] = replace(kept[-1], content=f"{kept[-1].content}\n\n{message.content}".strip())
        else:
            kept.append(message)
    return tuple(kept)


def _described(tool: ToolSpec) -> str:
    # One line, whatever a server's schema says: it must not look like a section or another tool.
    return " ".join(f"- {tool.name}: {tool.description} Input: {_signature(tool.parameters)}".split())


def _signature(parameters: Mapping[str, Any]) -> str:
    """Return parameters as a model reads them fastest: ``{"account": string, "reason"?: string}``."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return "{}"
    required = parameters.get("required", ())
    parts = [
        f"{json.dumps(name, ensure_ascii=False)}{'' if name in required else '?'}: {_kind(schema)}"
        for name, schema in properties.items()
    ]
    return f"{{{', '.join(parts)}}}"


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type", "any")
    simple = isinstance(kind, str) and kind not in ("object", "array", "any")
    text = kind if simple else json.dumps(dict(schema), ensure_ascii=False)
    text = str(kind) if len(text) > MAX_SCHEMA_CHARS else text
    described = schema.get("description")
    return f"{text} ({described})" if simple and isinstance(described, str) and described else text
