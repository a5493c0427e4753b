"""What a project's tools are written with: `tool`, `ToolResult`, `ToolContext`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.memory import MemoryHandle
from voice_agent.dialogue.plugin_threads import PluginThreads

MARK = "__voice_agent_tool__"
Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool found. ``llm_response`` is JSON-ready data for the model and the tracker.

    Expected business failures are data too: ``{"ok": False, "error": "…", "hint": "…"}``.
    """

    llm_response: Any = None


class ToolContext:
    """What a running tool may know and do.

    Attributes:
        memory: Reads and writes by bare field name; closed once the tool has ended.
        conversation_id: The conversation it runs for.
        idempotency_key: The same for a repeat of the same step with the same arguments, so that
            a tool cut off after its effect can see that it has already happened.
        settings: Those of the plugin that the tool comes from; None for any other.
        threads: Where a plugin's tool that is not ``async`` runs.
    """

    __slots__ = ("_token", "conversation_id", "idempotency_key", "memory", "settings", "threads")

    def __init__(
        self,
        memory: MemoryHandle,
        token: CancelToken,
        conversation_id: str,
        idempotency_key: str,
        settings: Any = None,
        *,
        threads: PluginThreads,
    ) -> None:
        self.memory, self._token, self.settings, self.threads = memory, token, settings, threads
        self.conversation_id, self.idempotency_key = conversation_id, idempotency_key

    @property
    def is_cancelled(self) -> bool:
        """The turn was cancelled; a tool that can stop cleanly should."""
        return self._token.is_cancelled

    @property
    def cancel_reason(self) -> str | None:
        """``barge_in``, ``hang_up``, ``disconnected``, ``timeout``, ``shutdown``, ``superseded`` or None."""
        return None if self._token.reason is None else self._token.reason.value


class ToolDefinitionError(Exception):
    """A tool is written in a way that cannot work. The message says what would be right."""


class ArgumentsRefused(Exception):
    """Arguments do not fit the tool's signature. Fit for the model to read."""


class ToolFailed(Exception):
    """A tool could not do its work, for a reason that is known and fit for the model to read.

    Attributes:
        unreachable: What it works with cannot be reached at present.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


@dataclass(frozen=True, slots=True)
class _Mark:
    description: str
    interruptible: bool


def tool(
    description: str = "", *, interruptible: bool = True, uninterruptible: bool = False
) -> Callable[[Function], Function]:
    """Declare an ``async def`` as a tool.

    Args:
        description: Tells the model when to use it.
        interruptible: False lets it finish, and its result be recorded, when the caller barges in.
        uninterruptible: True means the same.

    Raises:
        ToolDefinitionError: Used without parentheses, or on a function that is not ``async``.
    """
    if callable(description):
        name = getattr(description, "__name__", "tool")
        raise ToolDefinitionError(f'`@tool` on {name!r} needs a description: write @tool(description="…").')

    def mark(function: Function) -> Function:
        name = getattr(function, "__name__", "tool")
        if not asyncio.iscoroutinefunction(cast(Any, function)):
            raise ToolDefinitionError(f"The tool {name!r} must be `async def`.")
        if not description.strip():
            raise ToolDefinitionError(f"The tool {name!r} needs a description.")
        setattr(function, MARK, _Mark(description.strip(), interruptible and not uninterruptible))
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Tool:
    """A loaded tool: its function, and a schema taken from its signature.

    Attributes:
        model: Checks its arguments.
        check: Checks them instead, where the schema is not that of a signature.
        path: The file it was loaded from.
        writes: Memory fields its text names when it writes, with their lines.
        timeout_s: How long it may take; None for the agent's limit.
        settings: Those of the plugin that it comes from.
    """

    name: str
    description: str
    function: Callable[..., Awaitable[Any]]
    parameters: Mapping[str, Any]
    model: type[BaseModel] | None = field(default=None, repr=False)
    interruptible: bool = True
    takes_context: str | None = None
    path: Path | None = None
    writes: tuple[tuple[str, int], ...] = ()
    check: Callable[[Mapping[str, Any]], dict[str, Any]] | None = field(default=None, repr=False)
    timeout_s: float | None = None
    settings: Any = field(default=None, repr=False, compare=False)

    def current(self) -> Tool | None:
        """Return the tool as it is now; None while it is away, which those of a project never are."""
        return self

    @property
    def live(self) -> Tool:
        """The tool as it is now; while it is away, one that fails with the reason."""
        return self.current() or self

    @property
    def line(self) -> int | None:
        """Line of its definition in ``path``."""
        code = getattr(self.function, "__code__", None)
        return code.co_firstlineno if isinstance(code, CodeType) else None

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with their types applied.

        Raises:
            ArgumentsRefused: Missing, unknown or ill-typed ones, all named.
        """
        if self.check is not None:
            return self.check(arguments)
        if self.model is None:
            return dict(arguments)
        try:
            checked = self.model.model_validate(dict(arguments))
        except ValidationError as fault:
            faults = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in fault.errors(include_url=False))
            raise ArgumentsRefused("; ".join(faults)) from fault
        return {name: getattr(checked, name) for name in type(checked).model_fields}

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of its arguments."""
        return tuple(self.parameters.get("properties", ()))


def is_tool(value: object) -> bool:
    """Return whether a module's value was marked by `tool`."""
    # Nothing but a function is asked: an object of the project's may raise at any attribute.
    return inspect.isfunction(value) and isinstance(getattr(value, MARK, None), _Mark)


def build_tool(function: Callable[..., Awaitable[Any]]) -> Tool:
    """Make a `Tool` from a function marked with `tool`.

    Raises:
        ToolDefinitionError: Its signature cannot be turned into a schema.
    """
    mark: _Mark = getattr(function, MARK)
    name = function.__name__
    try:
        hints = get_type_hints(function)
    except Exception as fault:
        raise ToolDefinitionError(f"The type hints of tool {name!r} cannot be read: {fault}.") from fault
    fields: dict[str, Any] = {}
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, str)
        if parameter.name == "context" or hint is ToolContext:
            context = parameter.name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolDefinitionError(f"The tool {name!r} cannot take *args, **kwargs or positional-only parameters.")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hint, default)
    try:
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields)
        schema = _without_titles(model.model_json_schema())
    except (PydanticUserError, NameError, TypeError) as fault:
        raise ToolDefinitionError(f"The signature of tool {name!r} gives no schema: {fault}") from fault
    schema.setdefault("properties", {})
    return Tool(name, mark.description, function, schema, model, mark.interruptible, context)


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        result = {}
        for key, value in schema.items():
            if key == "title" and isinstance(value, str):
                continue
            if key == "properties":
                result[key] = {name: _without_titles(inner) for name, inner in value.items()}
            else:
                result[key] = _without_titles(value)
        return result
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema
