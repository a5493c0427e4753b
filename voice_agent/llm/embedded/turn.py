"""What a request says about the turn it belongs to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voice_agent.llm.protocol import Message, ModelRequest, Scope, ToolSpec

BARE_QUESTION_WORDS = 4
"""A question as short as this leans on the sentence before it."""
FRAMEWORK_TOOLS = frozenset(
    [
        "start_skill",
        "run_block",
        "set_fields",
        "complete",
        "complete_skill",
        "cancel_skill",
        "listen",
        "hangup",
        "transfer",
        "search_knowledge",
        "cannot_help",
        "confirm",
        "deny",
    ]
)
"""Tools of the engine; every other tool is the project's own."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that was made, and its result; None while it has none."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None = None

    @property
    def failed(self) -> bool:
        """The result is an error, as the engine and tools report one."""
        try:
            data = json.loads(self.result or "{}")
        except ValueError:
            return False
        return isinstance(data, dict) and (bool(data.get("error")) or data.get("ok") is False)


@dataclass(frozen=True, slots=True)
class Turn:
    """One request, read.

    Attributes:
        calls: What was called since the caller last spoke, in order.
        fresh: The results that nothing was said to yet: those at the very end.
        earlier: What was called before.
        last_said: What the agent last said before the caller spoke.
        exchanges: What was said to the caller, each with the caller's words in reply to it.
    """

    scope: Scope
    tools: Mapping[str, ToolSpec]
    calls: tuple[Call, ...] = ()
    fresh: tuple[Call, ...] = ()
    earlier: tuple[Call, ...] = ()
    last_said: str = ""
    exchanges: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, request: ModelRequest) -> Turn:
        messages = request.messages
        spoken = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
        tail = len(messages)
        while tail > spoken + 1 and messages[tail - 1].role == "tool":
            tail -= 1
        fresh_ids = {message.tool_call_id for message in messages[tail:]}
        calls = _calls(messages[spoken + 1 :])
        fresh = [call for call_id, call in calls if call_id in fresh_ids and call.result is not None]
        said = [message.content for message in messages[: max(spoken, 0)] if message.role == "assistant"]
        return cls(
            request.scope,
            {tool.name: tool for tool in request.tools},
            tuple(call for _, call in calls),
            tuple(fresh),
            tuple(call for _, call in _calls(messages[: spoken + 1])),
            next((text for text in reversed(said) if text.strip()), ""),
            tuple(_exchanges(messages)),
        )

    @property
    def utterance(self) -> str:
        return self.scope.utterance.strip()

    @property
    def own_tools(self) -> list[ToolSpec]:
        """The project's own tools on offer."""
        return [tool for tool in self.tools.values() if tool.name not in FRAMEWORK_TOOLS]

    def offers(self, name: str) -> bool:
        return name in self.tools

    def has_called(self, name: str) -> bool:
        """Whether ``name`` was called since the caller last spoke."""
        return any(call.name == name for call in self.calls)

    def open_question(self) -> str:
        """Return the last question with what it is about: "Is that right?" alone would ask about something else."""
        asked = self.last_question()
        if len(asked.split()) > BARE_QUESTION_WORDS:
            return asked
        said = re.split(r"(?<=[.!?])\s+", self.last_said.strip())
        return " ".join(said[-2:]) if asked else ""

    def last_question(self) -> str:
        """Return the last thing said that was a question, or an empty string."""
        start = max(self.last_said.rfind(mark, 0, -1) for mark in ".!?") + 1 if self.last_said else 0
        asked = self.last_said[start:].strip()
        return asked if asked.endswith("?") else ""


def _calls(messages: Sequence[Message]) -> list[tuple[str, Call]]:
    results = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    return [
        (call.id, Call(call.name, _arguments(call.arguments), results.get(call.id)))
        for message in messages
        for call in message.tool_calls
    ]


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text or "{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _exchanges(messages: Sequence[Message]) -> list[tuple[str, str]]:
    said, found = "", []
    for message in messages:
        if message.role == "assistant" and message.content.strip():
            said = message.content.strip()
        elif message.role == "user":
            found.append((said, message.content))
            said = ""
    return found
