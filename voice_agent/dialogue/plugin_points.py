"""Where hooks of plugins are called, under their names here and in the engine whose plugins load too.

A hook of a plugin is given a value and a `HookContext` and returns another value, or None to leave it as it is.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from voice_agent.dialogue.hooks import Hook, HookDefinitionError, Payload, Point

MARK = "__voice_agent_plugin_hook__"
DEFAULT_PRIORITY = 1.0
FACTORY = "factory_allowed_agentic_workflows"
"""Called once while a project loads, with the list of configuration classes that are allowed."""


class PluginPoint(Enum):
    """Points that only plugins have."""

    PROMPT_PREFIX = "agent_prompt_prefix"
    PROMPT_SUFFIX = "agent_prompt_suffix"
    ALLOWED_TOOLS = "agent_allowed_tools"
    FAST_REPLY = "fast_reply"
    AGENT_FAST_REPLY = "agent_fast_reply"


POINTS: Mapping[str, Point | PluginPoint] = {
    **{point.value: point for point in PluginPoint},
    "message_in": Point.INCOMING_MESSAGE,
    "message_out": Point.OUTGOING_MESSAGE,
    "before_recall": Point.KNOWLEDGE_QUERY,
    "after_recall": Point.KNOWLEDGE_RESULTS,
    "before_cat_reads_message": Point.INCOMING_MESSAGE,
    "before_cat_sends_message": Point.OUTGOING_MESSAGE,
    "before_cat_recalls_memories": Point.KNOWLEDGE_QUERY,
    "after_cat_recalls_memories": Point.KNOWLEDGE_RESULTS,
}


@dataclass(frozen=True)
class TextPayload(Payload):
    """A text that hooks may replace: a part of the prompt, or a reply that needs no model (empty: there is none)."""

    text: str

    def given(self) -> Any:
        return self.text

    def taken(self, value: Any) -> TextPayload | None:
        return TextPayload(value) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class AllowedTool:
    """A tool on offer, as a hook sees it."""

    name: str
    description: str


@dataclass(frozen=True)
class AllowedToolsPayload(Payload):
    """Tools of the project and of plugins that the model may be given. Hooks may take some away, never add any."""

    tools: tuple[AllowedTool, ...]

    def given(self) -> Any:
        return list(self.tools)

    def taken(self, value: Any) -> AllowedToolsPayload | None:
        if not isinstance(value, list | tuple | set | frozenset):
            return None
        names = {one if isinstance(one, str) else getattr(one, "name", None) for one in value}
        return AllowedToolsPayload(tuple(tool for tool in self.tools if tool.name in names))


@dataclass(frozen=True, slots=True)
class _Mark:
    priority: float


def hook(function: Any = None, /, *, priority: float = DEFAULT_PRIORITY) -> Any:
    """Mark a function of a plugin as the hook it is called like; works with and without parentheses.

    Args:
        priority: Higher ones run first; equal ones in the order of the plugins' names.
    """
    if function is None:
        return lambda marked: hook(marked, priority=priority)
    if not callable(function) or isinstance(priority, bool) or not isinstance(priority, int | float):
        raise HookDefinitionError("Write @hook or @hook(priority=2) above a function.")
    setattr(function, MARK, _Mark(float(priority)))
    return function


def mark_of(function: object) -> float | None:
    """Return the priority that `hook` gave a function; None if it is not marked."""
    mark = getattr(function, MARK, None)
    return mark.priority if isinstance(mark, _Mark) else None


def plugin_hook(function: Callable[..., Any], plugin: str) -> Hook | None:
    """Make a `Hook` of a marked function; None if there is no point of its name.

    Raises:
        HookDefinitionError: It takes something other than a value and a context.
    """
    name = function.__name__
    point = POINTS.get(name)
    if point is None:
        return None
    count = parameters_of(function)
    return Hook(
        point,
        True,
        function,
        takes_context=count == 2,
        name=name,
        plugin=plugin,
        priority=mark_of(function) or 0.0,
        plain=True,
        threaded=not asyncio.iscoroutinefunction(function),
    )


def parameters_of(function: Callable[..., Any]) -> int:
    """Return how many arguments a hook takes.

    Raises:
        HookDefinitionError: Not one or two.
    """
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    plain = all(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    if not plain or not 1 <= len(kinds) <= 2:
        raise HookDefinitionError(f"The hook {function.__name__!r} must take (value) or (value, context).")
    return len(kinds)
