"""What a project's hooks are written with: decorators, payloads, `HookContext`, `RetryModel`.

::

    from voice_agent.dialogue.hooks import modify_outgoing_message, on_turn_finished

    @modify_outgoing_message
    async def never_say_the_number(payload, context):
        return payload.model_copy(update={"text": payload.text.replace("4242", "…")})

An ``on_*`` hook observes: it runs beside the turn and never holds it up. A ``modify_*`` hook is awaited,
for a limited time, and may return another payload (or None, or nothing, to leave it as it is). Both
may take the payload alone or the payload and a `HookContext`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

from voice_agent.dialogue.hook_context import HistoryLine, HookContext
from voice_agent.dialogue.hook_payloads import (
    OBSERVED_ONLY,
    OLDER_POINTS,
    IncomingMessagePayload,
    KnowledgeQueryPayload,
    KnowledgeResultsPayload,
    ModelRequestPayload,
    ModelResponsePayload,
    OutgoingMessagePayload,
    Payload,
    Point,
    ToolCallPayload,
    ToolResultPayload,
    TurnFinishedPayload,
    TurnStartedPayload,
)

__all__ = [
    "HistoryLine",
    "HookContext",
    "IncomingMessagePayload",
    "KnowledgeQueryPayload",
    "KnowledgeResultsPayload",
    "ModelRequestPayload",
    "ModelResponsePayload",
    "OutgoingMessagePayload",
    "OutgoingTextPayload",
    "Payload",
    "Point",
    "RetryModel",
    "ToolCallPayload",
    "ToolResultPayload",
    "TurnFinishedPayload",
    "TurnStartedPayload",
    "modify_incoming_message",
    "modify_knowledge_query",
    "modify_knowledge_results",
    "modify_model_request",
    "modify_model_response",
    "modify_outgoing_message",
    "modify_outgoing_text",
    "modify_tool_call",
    "modify_tool_result",
    "on_incoming_message",
    "on_knowledge_query",
    "on_knowledge_results",
    "on_model_request",
    "on_model_response",
    "on_outgoing_message",
    "on_outgoing_text",
    "on_tool_call",
    "on_tool_result",
    "on_turn_finished",
    "on_turn_started",
]
"""What `from voice_agent.dialogue.hooks import *` brings to a project's hooks."""

MARK = "__voice_agent_hook__"


class RetryModel(Exception):
    """Raised by a `modify_model_response` hook: the reply is thrown away and the model asked again.

    ``feedback`` is shown to the model. On side calls (rewording, reading fields out of the first
    words) the reply is only thrown away. At most twice in a turn; then the turn gives up.
    """

    def __init__(self, feedback: str = "") -> None:
        super().__init__(feedback)
        self.feedback = feedback


class HookDefinitionError(Exception):
    """A hook is written in a way that cannot work. The message says what would be right."""


@dataclass(frozen=True)
class Hook:
    """A loaded hook.

    Attributes:
        takes_context: It wants a second argument.
        plugin: The plugin it comes from; empty for the project's own.
        priority: Of hooks of plugins, the higher ones run first.
        plain: It is called with a bare value, and left out when it fails.
        threaded: It is no ``async def`` and runs in a thread.
        settings: Those of its plugin; None for what has none.
    """

    point: Enum
    modifies: bool
    function: Callable[..., Awaitable[Any]] = field(repr=False)
    takes_context: bool = True
    name: str = ""
    plugin: str = ""
    priority: float = 0.0
    plain: bool = False
    threaded: bool = False
    settings: Any = field(default=None, repr=False, compare=False)


def _decorator(name: str) -> Callable[..., Any]:
    def decorate(function: Any = None) -> Any:
        """Mark an ``async def`` as a hook; works with and without parentheses."""
        if function is None:
            return decorate
        if not asyncio.iscoroutinefunction(function):
            raise HookDefinitionError(f"The hook {getattr(function, '__name__', name)!r} must be `async def`.")
        setattr(function, MARK, name)
        return function

    decorate.__name__ = decorate.__qualname__ = name
    return decorate


def point_of(name: str) -> tuple[Point, bool] | None:
    """Return the (point, modifies) that a name such as ``on_tool_call`` means; None if it means none."""
    prefix, _, rest = name.partition("_")
    if prefix not in ("on", "modify"):
        return None
    found = OLDER_POINTS.get(rest) or next((p for p in Point if p.value == rest), None)
    if found is None or (prefix == "modify" and found in OBSERVED_ONLY):
        return None
    return found, prefix == "modify"


NAMES: tuple[str, ...] = tuple(
    f"{prefix}_{rest}"
    for prefix in ("on", "modify")
    for rest in (*(p.value for p in Point), *OLDER_POINTS)
    if point_of(f"{prefix}_{rest}") is not None
)

on_incoming_message = _decorator("on_incoming_message")
modify_incoming_message = _decorator("modify_incoming_message")
on_turn_started = _decorator("on_turn_started")
on_turn_finished = _decorator("on_turn_finished")
on_model_request = _decorator("on_model_request")
modify_model_request = _decorator("modify_model_request")
on_model_response = _decorator("on_model_response")
modify_model_response = _decorator("modify_model_response")
on_tool_call = _decorator("on_tool_call")
modify_tool_call = _decorator("modify_tool_call")
on_tool_result = _decorator("on_tool_result")
modify_tool_result = _decorator("modify_tool_result")
on_knowledge_query = _decorator("on_knowledge_query")
modify_knowledge_query = _decorator("modify_knowledge_query")
on_knowledge_results = _decorator("on_knowledge_results")
modify_knowledge_results = _decorator("modify_knowledge_results")
on_outgoing_message = _decorator("on_outgoing_message")
modify_outgoing_message = _decorator("modify_outgoing_message")
on_outgoing_text = _decorator("on_outgoing_text")
modify_outgoing_text = _decorator("modify_outgoing_text")

OutgoingTextPayload = OutgoingMessagePayload
"""Older name."""


def hook_name(value: object) -> str | None:
    """Return which hook a module's value is: marked by a decorator, or called like one; None if it is no hook."""
    marked = getattr(value, MARK, None)
    if isinstance(marked, str):
        return marked
    name = getattr(value, "__name__", "")
    return name if callable(value) and not isinstance(value, type) and point_of(name) is not None else None


def build_hook(name: str, function: Callable[..., Awaitable[Any]]) -> Hook:
    """Make a `Hook` of a function that `hook_name` recognised.

    Raises:
        HookDefinitionError: It is not ``async``, or takes something other than a payload and a context.
    """
    own = getattr(function, "__name__", name)
    if not asyncio.iscoroutinefunction(cast(Any, function)):
        raise HookDefinitionError(f"The hook {own!r} must be `async def`.")
    code = cast(Any, function).__code__
    count = code.co_argcount
    if not 1 <= count <= 2 or code.co_kwonlyargcount:
        raise HookDefinitionError(f"The hook {own!r} must take (payload) or (payload, context).")
    found = point_of(name)
    assert found is not None
    return Hook(found[0], found[1], function, count == 2, own)
