"""Runs a project's tool: arguments checked, raced against cancellation and its timeout, recorded once.

tool     ──────────●───────────x        x = CancelledError at its current await
cancel   ──────────▲
grace              ├── grace ──┤
record   returned in the grace → recorded; cut off or abandoned → no record, it may run again
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled, WorkCancelledItself, race
from voice_agent.dialogue.events import EventLog, to_json
from voice_agent.dialogue.hook_runner import HookFailed, HookRunner
from voice_agent.dialogue.hooks import Point, ToolCallPayload, ToolResultPayload
from voice_agent.dialogue.memory import Memory, MemoryHandle
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.project import Skill
from voice_agent.dialogue.stepper import Mark, digest
from voice_agent.dialogue.tools import ArgumentsRefused, Tool, ToolContext, ToolFailed, ToolResult

log = logging.getLogger(__name__)

MAX_ERROR_CHARS = 300
MAX_RECORDED_CHARS = 1_000_000
"""A result is recorded up to here: it stays in memory, and in the store's backlog, with everything around it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds a tool may take, and seconds it is awaited after a cancellation."""

    timeout_s: float = 10.0
    grace_s: float = 1.0


class Dispatcher:
    """Runs tools for one conversation."""

    def __init__(self, memory: Memory, events: EventLog, limits: Limits, hooks: HookRunner) -> None:
        self._memory, self._events, self._limits, self._hooks = memory, events, limits, hooks

    async def run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        skill: Skill,
        step: str,
        activation: int,
        run: int = 0,
        cancel: CancelToken,
    ) -> Outcome:
        """Run ``tool`` once.

        Args:
            step: Name of the step, or of the tool when the model asked for it.
            activation: Number of the skill's activation.
            run: How often the step has succeeded in this activation. With skill, step and arguments
                these make the idempotency key: the same for a repeat of what was cut off or failed,
                another one when the step is meant to be done once more.

        Raises:
            TurnCancelled: The turn was cancelled and the tool did not return inside the grace.
        """
        try:
            arguments = await self._asked(tool, arguments, skill, cancel)
        except HookFailed as fault:
            outcome = Outcome(False, _error(f"Not executed: {fault}."))
            return self._record(tool, to_json(arguments), outcome, step)
        arguments_json = to_json(arguments)
        try:
            checked = tool.validate(arguments)
        except ArgumentsRefused as fault:
            return self._record(tool, arguments_json, Outcome(False, _error(f"Wrong arguments: {fault}")), step)
        own = CancelToken()
        handle = MemoryHandle(self._memory, skill.id)
        if tool.takes_context is not None:
            key = self._key(skill.id, step, f"{activation}.{run}", arguments_json)
            threads = self._hooks.threads
            context = ToolContext(handle, own, self._events.conversation_id, key, tool.settings, threads=threads)
            checked[tool.takes_context] = context
        outcome = await self._race(tool, checked, own, handle, cancel)
        outcome = await self._answered(tool, arguments, outcome, skill, step)
        read = frozenset(map(str, handle.read))
        return self._record(tool, arguments_json, replace(outcome, read=read), step)

    async def _asked(
        self, tool: Tool, arguments: Mapping[str, Any], skill: Skill, cancel: CancelToken
    ) -> Mapping[str, Any]:
        """Return the arguments as the project's hooks leave them."""
        if not self._hooks.watches(Point.TOOL_CALL):
            return arguments
        given = ToolCallPayload(tool.name, dict(arguments), skill.id)
        return (await self._hooks.run(Point.TOOL_CALL, given, cancel)).arguments

    async def _answered(
        self, tool: Tool, arguments: Mapping[str, Any], outcome: Outcome, skill: Skill, step: str
    ) -> Outcome:
        """Return the outcome as the project's hooks leave it.

        The tool has run and must be recorded, so nothing interrupts this but its own limit; what a
        hook was to keep back stays back when the hook breaks.
        """
        if not self._hooks.watches(Point.TOOL_RESULT):
            return outcome
        given = ToolResultPayload(tool.name, dict(arguments), json.loads(outcome.json), outcome.success, skill.id)
        try:
            changed = await self._hooks.run(Point.TOOL_RESULT, given)
        except HookFailed:
            return Outcome(outcome.success, _error("It has run; its result cannot be shown. Do not run it again."))
        except asyncio.CancelledError:
            self._record(tool, to_json(arguments), Outcome(outcome.success, _error("It has run.")), step)
            raise
        return Outcome(changed.success, to_json(changed.result), unreachable=outcome.unreachable)

    async def _race(
        self, tool: Tool, arguments: dict[str, Any], own: CancelToken, handle: MemoryHandle, cancel: CancelToken
    ) -> Outcome:
        def forward() -> None:
            own.cancel(cancel.reason or CancelReason.SUPERSEDED)

        cancel.check()
        # A tool that must not be interrupted still answers to its timeout.
        forget: Callable[[], None] = cancel.on_cancel(forward) if tool.interruptible else (lambda: None)
        timeout = tool.timeout_s or self._limits.timeout_s
        timer = asyncio.get_running_loop().call_later(timeout, own.cancel, CancelReason.TIMEOUT)

        async def work() -> Any:
            return await tool.function(**arguments)

        try:
            name = f"tool {tool.name}"
            done = await race(work(), own, name=name, grace_s=self._limits.grace_s, on_abandon=handle.close)
            return Outcome(True, _result_json(tool, done.value))
        except TurnCancelled:
            cancel_won = cancel.is_cancelled and own.reason is cancel.reason
            if cancel_won and tool.interruptible:
                raise
            return Outcome(False, _error(f"The tool took longer than {timeout:g} seconds."))
        except WorkCancelledItself:
            return Outcome(False, _error("The tool was cancelled from within."))
        except ToolFailed as fault:
            return Outcome(False, _error(str(fault)), unreachable=fault.unreachable)
        except Exception as fault:
            log.exception("tool %s failed in conversation %s", tool.name, self._events.conversation_id)
            return Outcome(False, _error(_described(fault)))
        finally:
            timer.cancel()
            forget()
            handle.close()

    def _key(self, skill: str, step: str, attempt: str, arguments_json: str) -> str:
        parts = (self._events.conversation_id, skill, attempt, step, arguments_json)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]

    def _record(self, tool: Tool, arguments_json: str, outcome: Outcome, step: str) -> Outcome:
        record_tool(self._events, tool.name, arguments_json, outcome, step=step)
        return outcome


def mark_of(arguments: Mapping[str, Any], outcome: Outcome) -> Mark:
    """Return what a run depended on; one that failed counts as not done when a block is gone through again."""
    return Mark(digest(to_json(arguments)) if outcome.success else "", outcome.read)


def record_tool(
    events: EventLog, name: str, arguments_json: str, outcome: Outcome, *, step: str = "", turn_id: str = ""
) -> None:
    """Record one dispatch under both of its names.

    Args:
        step: What asked for it, as counted in `Frame.runs`; nothing for tools of the framework.
        turn_id: The turn it belongs to, if that has ended.
    """
    payload = {
        "tool": name,
        "arguments_json": arguments_json,
        "result_json": outcome.json,
        "success": outcome.success,
    }
    if step:
        payload["step"] = step
    if turn_id:
        payload["turn_id"] = turn_id
    events.append("tool_executed", payload)
    events.append("mcp_tool_executed", payload)


def _result_json(tool: Tool, value: Any) -> str:
    if isinstance(value, ToolResult):
        value = value.llm_response
    else:
        # Its effect has happened, so it counts as run; only its author needs to know.
        log.warning("tool %s returned %s instead of a ToolResult", tool.name, type(value).__name__)
    text = _as_json(tool, value)
    if len(text) <= MAX_RECORDED_CHARS:
        return text
    log.warning("tool %s returned %d characters of JSON, which are cut", tool.name, len(text))
    return to_json({"cut": text[:MAX_RECORDED_CHARS], "left_out": len(text) - MAX_RECORDED_CHARS})


def _as_json(tool: Tool, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        log.warning("tool %s returned something that JSON has no form for", tool.name)
    try:
        return to_json(_adapted(value))
    except Exception:
        log.exception("the result of tool %s cannot be read", tool.name)
        return to_json({"note": "It has run; its result cannot be shown."})


def _adapted(value: Any) -> Any:
    """Return ``value`` with text for keys and numbers that JSON has no form for."""
    if isinstance(value, dict):
        return {str(k): _adapted(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return [_adapted(v) for v in value] if isinstance(value, list | tuple | set) else value


def _described(fault: Exception) -> str:
    """Return an exception's type and message; the message is the tool's own code and may raise itself."""
    try:
        return f"{type(fault).__name__}: {fault}"
    except Exception:  # noqa: BLE001
        return type(fault).__name__


def _error(message: str) -> str:
    return to_json({"error": message[:MAX_ERROR_CHARS]})
