"""Where hooks are called, and what they are given there. Authors import all of it from `voice_agent.dialogue.hooks`."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

from voice_agent.dialogue.knowledge import Passage
from voice_agent.llm.protocol import Message, ToolCall, ToolSpec


class Point(Enum):
    """Where hooks are called."""

    INCOMING_MESSAGE = "incoming_message"
    TURN_STARTED = "turn_started"
    TURN_FINISHED = "turn_finished"
    MODEL_REQUEST = "model_request"
    MODEL_RESPONSE = "model_response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    KNOWLEDGE_QUERY = "knowledge_query"
    KNOWLEDGE_RESULTS = "knowledge_results"
    OUTGOING_MESSAGE = "outgoing_message"


OBSERVED_ONLY = frozenset({Point.TURN_STARTED, Point.TURN_FINISHED})
"""Points at which there is nothing to modify."""
OLDER_POINTS: Mapping[str, Point] = {"outgoing_text": Point.OUTGOING_MESSAGE}


@dataclass(frozen=True)
class Payload:
    """What a hook is given."""

    def given(self) -> Any:
        """Return what a plugin's hook is called with: a copy of its own."""
        return copy.deepcopy(self)

    def taken(self, value: Any) -> Self | None:
        """Return the payload that a plugin's hook means by what it returned; None if that is nothing usable."""
        if isinstance(value, type(self)):
            return value
        text = isinstance(value, str) and any(one.name == "text" for one in dataclasses.fields(self))
        return self.model_copy(update={"text": value}) if text else None

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return a copy with some fields replaced."""
        return dataclasses.replace(self, **dict(update or {}))


@dataclass(frozen=True)
class IncomingMessagePayload(Payload):
    """The caller's final words, before they are stored. ``kind``: ``speech``, ``text`` or ``dtmf``."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class TurnStartedPayload(Payload):
    turn_id: str
    number: int


@dataclass(frozen=True)
class TurnFinishedPayload(Payload):
    """``status``: ``completed``, ``cancelled`` or ``error``; ``error`` is for the operator."""

    turn_id: str
    number: int
    status: str
    error: str | None = None


@dataclass(frozen=True)
class ModelRequestPayload(Payload):
    """A prompt about to be sent. Tools may be taken away, never added.

    ``purpose``: ``turn``, ``set_fields``, ``rephrase`` or ``confirm_rephrase``.
    """

    purpose: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True)
class ModelResponsePayload(Payload):
    """What the model answered, before any of it is said or done."""

    purpose: str
    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ToolCallPayload(Payload):
    """A tool whose gates are open, about to run."""

    tool: str
    arguments: Mapping[str, Any]
    skill: str = ""


@dataclass(frozen=True)
class ToolResultPayload(Payload):
    """What a tool returned, before it is recorded and shown to the model. ``result`` is JSON-ready data."""

    tool: str
    arguments: Mapping[str, Any]
    result: Any
    success: bool = True
    skill: str = ""


@dataclass(frozen=True)
class KnowledgeQueryPayload(Payload):
    """What is about to be looked for. ``limit``: passages at most; ``threshold``: the least score of one."""

    query: str
    limit: int = 3
    threshold: float = 0.0


@dataclass(frozen=True)
class KnowledgeResultsPayload(Payload):
    query: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class OutgoingMessagePayload(Payload):
    """One whole message of a reply. ``source``: ``response`` or ``model``. An empty text is not said."""

    text: str
    source: str = "response"
    response: str | None = None
