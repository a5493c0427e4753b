"""Runs a project's hooks for one conversation: observers beside the turn, modifiers within a time limit."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import logging
from collections.abc import Iterable
from enum import Enum
from typing import Any, Protocol, TypeVar, cast

from voice_agent.dialogue.background import Background
from voice_agent.dialogue.cancellation import CancelToken, TurnCancelled, WorkCancelledItself, within
from voice_agent.dialogue.hooks import Hook, HookContext, Payload, Point, RetryModel
from voice_agent.dialogue.plugin_threads import QUICK_S, PluginThreads, Work

log = logging.getLogger(__name__)
AnyPayload = TypeVar("AnyPayload", bound=Payload)

MODIFY_LIMIT_S = 2.0
"""What a modifying hook may take: the caller is waiting."""
OBSERVE_LIMIT_S = 30.0
MAX_OBSERVERS = 64
"""Observers of one conversation at once."""
GRACE_S = 0.2


class MakeContext(Protocol):
    """Makes a context."""

    def __call__(self, may_write: bool, settings: Any = None, /) -> HookContext:
        """Args: ``may_write``: its memory may be written; ``settings``: of the hook's plugin."""
        ...


class HookFailed(Exception):
    """A modifying hook raised, took too long or returned something else. What it stands before is not done."""


class HookSet:
    """The hooks of a project, in the order in which they run; shared by all conversations.

    Which hooks there are never changes; how those in threads have behaved is noted here for all of them.

    Args:
        threads: Where those run that are not ``async``; of its own by default. Closed by whoever loaded the project.
    """

    def __init__(self, hooks: Iterable[Hook] = (), threads: PluginThreads | None = None) -> None:
        self.threads = PluginThreads() if threads is None else threads
        self.overdue: dict[Hook, Work] = {}
        """Functions that took longer than they may; while one has not come back it is not started again."""
        self.seconds: dict[Hook, float] = {}
        """How long each function in a thread took the last time."""
        self._modify: dict[Enum, list[Hook]] = {}
        self._observe: dict[Enum, list[Hook]] = {}
        for hook in hooks:
            (self._modify if hook.modifies else self._observe).setdefault(hook.point, []).append(hook)

    def modifying(self, point: Enum) -> list[Hook]:
        return self._modify.get(point, [])

    def observing(self, point: Enum) -> list[Hook]:
        return self._observe.get(point, [])

    def __bool__(self) -> bool:
        return bool(self._modify or self._observe)


class HookRunner:
    """Calls the hooks of one conversation. Each is given a payload of its own: it changes things by what it returns."""

    def __init__(self, hooks: HookSet, make_context: MakeContext) -> None:
        self._hooks, self._make_context = hooks, make_context
        self._background = Background(MAX_OBSERVERS)

    @property
    def threads(self) -> PluginThreads:
        """Where functions of plugins run that are not ``async``."""
        return self._hooks.threads

    def modifies(self, point: Enum) -> bool:
        return bool(self._hooks.modifying(point))

    def watches(self, point: Enum) -> bool:
        """Anything at all is called at ``point``."""
        return bool(self._hooks.modifying(point) or self._hooks.observing(point))

    def observe(self, point: Enum, payload: Payload) -> None:
        """Let every observer of ``point`` see ``payload``, all at once, beside the turn."""
        for hook in self._hooks.observing(point):
            context = self._make_context(False, hook.settings)
            self._background.start(_watch(hook, copy.deepcopy(payload), context), f"hook {hook.name}")

    async def run(self, point: Enum, payload: AnyPayload, cancel: CancelToken | None = None) -> AnyPayload:
        """Run the modifying hooks one after the other and let the observers see what came of it.

        Args:
            cancel: The turn's token; without it the hooks are run to their end or their limit.

        Raises:
            HookFailed: One raised, took longer than `MODIFY_LIMIT_S`, or returned another type.
            RetryModel: One asked for the model to be asked again.
            TurnCancelled: The turn was cancelled meanwhile.
        """
        payload = await self.check(point, payload, cancel)
        self.observe(point, payload)
        return payload

    async def check(self, point: Enum, payload: AnyPayload, cancel: CancelToken | None = None) -> AnyPayload:
        """Run the modifying hooks alone; see `run`."""
        for hook in self._hooks.modifying(point):
            payload = await (self._plain if hook.plain else self._modify)(hook, payload, cancel)
        return payload

    async def _plain(self, hook: Hook, payload: AnyPayload, cancel: CancelToken | None) -> AnyPayload:
        """Call a plugin's hook with a bare value. One that fails in whatever way leaves the value as it is.

        Raises:
            TurnCancelled: The turn was cancelled meanwhile.
        """
        name = f"hook {hook.name} of plugin {hook.plugin}"
        overdue = self._hooks.overdue.get(hook)
        if overdue is not None and not overdue.is_over:
            log.warning("%s is left out: it has not come back from an earlier call", name)
            return payload
        context = self._make_context(False, hook.settings)
        arguments = (payload.given(), context) if hook.takes_context else (payload.given(),)
        try:
            if hook.threaded:
                value = await self._beside(hook, arguments, cancel, name)
            else:
                work = cast(Any, hook.function(*arguments))
                value = await within(work, MODIFY_LIMIT_S, cancel, name=name, grace_s=GRACE_S)
        except TurnCancelled:
            if cancel is not None:
                cancel.check()
            log.error("%s is left out: it took longer than %g s", name, MODIFY_LIMIT_S)
            return payload
        except Exception:
            log.exception("%s failed and is left out", name)
            return payload
        if value is None:
            return payload
        try:
            taken = payload.taken(value)
        except Exception:  # noqa: BLE001 - the value's own code may raise
            taken = None
        if taken is None:
            log.error("%s returned %s, which means nothing there", name, type(value).__name__)
            return payload
        return taken

    async def _beside(self, hook: Hook, arguments: tuple[Any, ...], cancel: CancelToken | None, name: str) -> Any:
        """Call a function that is not ``async`` in a thread; one that was quick the last time is waited for right here.

        Raises:
            TurnCancelled: The turn was cancelled meanwhile, or the function took longer than `MODIFY_LIMIT_S`.
            Exception: What it raised.
        """
        hooks, work = self._hooks, self.threads.begin(hook.function, *arguments)
        try:
            if hooks.seconds.get(hook, 0.0) < QUICK_S and work.stand_by(QUICK_S):
                return work.outcome()
            return await within(work.wait(), MODIFY_LIMIT_S, cancel, name=name, grace_s=GRACE_S)
        except TurnCancelled:
            if cancel is None or not cancel.is_cancelled:
                hooks.overdue[hook] = work
            raise
        finally:
            hooks.seconds[hook] = work.seconds if work.is_over else MODIFY_LIMIT_S

    async def _modify(self, hook: Hook, payload: AnyPayload, cancel: CancelToken | None) -> AnyPayload:
        context, name = self._make_context(True, hook.settings), f"hook {hook.name}"
        work = _call(hook, copy.deepcopy(payload), context)
        try:
            given = await within(work, MODIFY_LIMIT_S, cancel, name=name, grace_s=GRACE_S)
        except TurnCancelled:
            if cancel is not None:
                cancel.check()
            log.error("%s took longer than %g s", name, MODIFY_LIMIT_S)
            raise HookFailed(f"{name} took too long") from None
        except RetryModel:
            if hook.point is Point.MODEL_RESPONSE:
                raise
            raise HookFailed(f"{name} raised RetryModel where no reply was made") from None
        except WorkCancelledItself:
            raise HookFailed(f"{name} was cancelled from within") from None
        except Exception as fault:
            log.exception("%s failed", name)
            raise HookFailed(f"{name} raised {type(fault).__name__}") from fault
        finally:
            context.memory.close()
        return _taken(name, payload, given)

    async def aclose(self, wait_s: float = 1.0) -> None:
        """Wait a moment for observers, then end them. Idempotent."""
        await self._background.aclose(wait_s)


def _taken(name: str, payload: AnyPayload, given: Any) -> AnyPayload:
    """Return the payload that a hook's return value stands for."""
    if given is None:
        return payload
    if isinstance(given, type(payload)):
        return given
    if isinstance(given, str) and any(f.name == "text" for f in dataclasses.fields(payload)):
        return payload.model_copy(update={"text": given})
    log.error("%s returned %s instead of %s", name, type(given).__name__, type(payload).__name__)
    raise HookFailed(f"{name} returned {type(given).__name__}")


async def _call(hook: Hook, payload: Payload, context: HookContext) -> Any:
    return await (hook.function(payload, context) if hook.takes_context else hook.function(payload))


async def _watch(hook: Hook, payload: Payload, context: HookContext) -> None:
    async with asyncio.timeout(OBSERVE_LIMIT_S):
        await _call(hook, payload, context)
