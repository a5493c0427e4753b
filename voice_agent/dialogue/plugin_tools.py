"""``@tool`` as plugins of another engine write it: its docstring describes it, ``cat`` is the context."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

from voice_agent.dialogue import tools as ours
from voice_agent.dialogue.tools import ToolContext, ToolDefinitionError, ToolResult


def tool(function: Any = None, /, **options: Any) -> Any:
    """Declare a function as a tool. Options that mean nothing here (``return_direct``, ``examples``) are ignored.

    Raises:
        ToolDefinitionError: It has no docstring to describe it.
    """
    if function is None:
        return lambda marked: tool(marked, **options)
    if not callable(function):
        raise ToolDefinitionError("Write @tool above a function.")
    description = (options.get("description") or inspect.getdoc(function) or "").strip()
    if not description:
        raise ToolDefinitionError(f"The tool {function.__name__!r} needs a docstring that describes it.")
    return ours.tool(description=description)(_adapted(function))


def _adapted(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    wants_cat = "cat" in signature.parameters

    @functools.wraps(function)
    async def adapted(*, context: ToolContext, **arguments: Any) -> ToolResult:
        if wants_cat:
            arguments["cat"] = context
        call = functools.partial(function, **arguments)
        value = await call() if asyncio.iscoroutinefunction(function) else await context.threads.run(call)
        return value if isinstance(value, ToolResult) else ToolResult(value)

    given = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        else parameter
        for name, parameter in signature.parameters.items()
        if name != "cat"
    ]
    own = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=ToolContext)
    hints = {k: v for k, v in function.__annotations__.items() if k not in ("cat", "return")}
    adapted.__annotations__ = {**hints, "context": ToolContext}
    adapted.__signature__ = signature.replace(parameters=[*given, own])  # type: ignore[attr-defined]
    # `inspect` and type hints must read the above, not the function underneath.
    del adapted.__wrapped__
    return adapted
