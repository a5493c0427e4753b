"""Cancellation as a race with a deadline.

A turn carries a `CancelToken`. Work that may take time (a model stream, a tool await, a step)
runs through `race`: whichever of work and token comes first wins. The loser is cancelled, awaited
for the grace window, and if it still lives it is abandoned by name, logged and counted::

    work    ────────────●──────────────x            x = CancelledError at its current await
    token   ────────────▲ cancel(BARGE_IN)
    grace               ├──── grace_s ────┤
    outcome             done in the grace → its result counts; later → abandoned, refused

Times are seconds of the event loop's clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from voice_agent.telemetry.metrics import ABANDONED_TASKS

log = logging.getLogger(__name__)
T = TypeVar("T")

DEFAULT_GRACE_S = 0.5


class CancelReason(Enum):
    BARGE_IN = "barge_in"
    HANG_UP = "hang_up"
    DISCONNECTED = "disconnected"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    SUPERSEDED = "superseded"


class TurnCancelled(Exception):
    """The token won the race. Not a `BaseException`: it travels through the turn as an outcome."""

    def __init__(self, reason: CancelReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class CancelToken:
    """A one-way switch shared by everything a turn does. Safe to cancel in any state, any number of times."""

    __slots__ = ("_callbacks", "_reason")

    def __init__(self) -> None:
        self._reason: CancelReason | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def is_cancelled(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> CancelReason | None:
        return self._reason

    def cancel(self, reason: CancelReason) -> bool:
        """Cancel; the first reason stays. Returns whether this call was the one that did it."""
        if self._reason is not None:
            return False
        self._reason = reason
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
        return True

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back synchronously on cancellation (at once if already cancelled). Returns an unsubscriber."""
        if self._reason is not None:
            callback()
            return lambda: None
        self._callbacks.append(callback)

        def forget() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return forget

    def check(self) -> None:
        """Raise `TurnCancelled` if the token is cancelled."""
        if self._reason is not None:
            raise TurnCancelled(self._reason)


@contextlib.contextmanager
def limited(token: CancelToken, limit_s: float | None) -> Iterator[CancelToken]:
    """Give a token of its own to what runs in the block: cancelled with ``token``, and with TIMEOUT after ``limit_s``.

    Args:
        limit_s: Seconds; None for no limit.
    """
    own = CancelToken()

    def forward() -> None:
        own.cancel(token.reason or CancelReason.SUPERSEDED)

    forget = token.on_cancel(forward)
    timer = None
    if limit_s is not None:
        timer = asyncio.get_running_loop().call_later(limit_s, own.cancel, CancelReason.TIMEOUT)
    try:
        yield own
    finally:
        forget()
        if timer is not None:
            timer.cancel()


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """The work ended, by itself or inside the grace window (``late``)."""

    value: T
    late: bool = False


# Abandoned tasks are referenced here until they end by themselves, so that they are neither
# garbage-collected in mid-flight nor waited for by any call.
_abandoned: set[asyncio.Task[Any]] = set()


def abandon(task: asyncio.Task[Any], name: str) -> None:
    """Give up on a task that ignored its cancellation: count it, log it, let it end alone."""
    ABANDONED_TASKS.labels(kind=name).inc()
    log.warning("abandoned %s: it did not end within its grace window", name)
    _abandoned.add(task)

    def ended(done: asyncio.Task[Any]) -> None:
        _abandoned.discard(done)
        if not done.cancelled() and done.exception() is not None:
            log.warning("abandoned %s ended with %r", name, done.exception())

    task.add_done_callback(ended)


async def stop(task: asyncio.Task[Any], name: str, grace_s: float) -> bool:
    """Cancel a task and wait for it at most ``grace_s`` seconds. Returns whether it ended in time."""
    task.cancel()
    # A second cancellation of the waiter must not leave the task behind unowned.
    try:
        await asyncio.wait({task}, timeout=grace_s)
    finally:
        if not task.done():
            abandon(task, name)
    return task.done()


async def race(
    work: Coroutine[Any, Any, T],
    token: CancelToken,
    *,
    name: str,
    grace_s: float = DEFAULT_GRACE_S,
    interruptible: bool = True,
    on_abandon: Callable[[], None] | None = None,
) -> Finished[T]:
    """Run ``work`` against ``token``.

    Args:
        name: Stable name of the kind of work, for logs and the abandoned-tasks counter.
        interruptible: False lets the work finish even when the token is cancelled.
        on_abandon: Called when the work outlived its grace (to close its memory handle).

    Returns:
        The result, with ``late`` set when the work returned inside the grace window.

    Raises:
        TurnCancelled: The token won, and the work ended without a result or was abandoned.
        Exception: Whatever the work raised. A `CancelledError` that the work raised by itself is
            turned into `WorkCancelledItself`, so that a tool cannot kill the call.
    """
    if token.is_cancelled and interruptible:
        work.close()
        token.check()
    task = asyncio.get_running_loop().create_task(contained(work, name), name=name)
    fired = asyncio.Event()
    forget = token.on_cancel(fired.set) if interruptible else (lambda: None)
    waiter = asyncio.get_running_loop().create_task(fired.wait(), name=f"{name}.cancel")
    try:
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        late = not task.done()
        if late and not await stop(task, name, grace_s) and on_abandon is not None:
            on_abandon()
    except asyncio.CancelledError:
        # The turn itself is being torn down from outside: the work goes first.
        if not task.done() and not await stop(task, name, grace_s) and on_abandon is not None:
            on_abandon()
        raise
    finally:
        forget()
        waiter.cancel()
    if not task.done():
        token.check()
    if task.cancelled():
        token.check()
        raise WorkCancelledItself(name)
    return Finished(task.result(), late=late)


async def within(
    work: Coroutine[Any, Any, T], limit_s: float, token: CancelToken | None = None, *, name: str, grace_s: float
) -> T:
    """Run ``work`` for at most ``limit_s`` seconds: `race` for what is done often and is short.

    Raises:
        TurnCancelled: The token won; with reason `CancelReason.TIMEOUT`, the limit did.
        Exception: As `race`.
    """
    if token is not None and token.is_cancelled:
        work.close()
        token.check()
    late = False
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def wake() -> None:
        if not ended.done():
            ended.set_result(None)

    # Told from inside and not by a callback of the task: that would take one more round of the loop.
    task = loop.create_task(contained(work, name, wake), name=name)
    timer = loop.call_later(limit_s, wake)
    forget = token.on_cancel(wake) if token is not None else None
    try:
        await ended
    finally:
        timer.cancel()
        if forget is not None:
            forget()
        if late := not task.done():
            await stop(task, name, grace_s)
    if token is not None:
        token.check()
    if late and (not task.done() or task.cancelled()):
        raise TurnCancelled(CancelReason.TIMEOUT)
    if task.cancelled():
        raise WorkCancelledItself(name)
    return task.result()


async def contained(work: Coroutine[Any, Any, T], name: str, ended: Callable[[], None] | None = None) -> T:
    """Run ``work``; an attempt to end the process becomes a failure of the work, as does whatever is no `Exception`.

    A loop lets `SystemExit` and `KeyboardInterrupt` pass through a task and stops, with every call on it.
    Ctrl-C does not come this way: the loop's runner turns it into a cancellation. Libraries have others,
    such as the ``PanicException`` of extensions written in Rust.
    """
    try:
        return await work
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    except (SystemExit, KeyboardInterrupt) as error:
        raise WorkExited(f"{name} tried to end the process ({type(error).__name__})") from error
    except BaseException as error:
        raise WorkExited(f"{name} raised {type(error).__name__}") from error
    finally:
        if ended is not None:
            ended()


class WorkExited(Exception):
    """Work raised what is no `Exception`, such as `SystemExit`: a library's ``sys.exit`` must not end every call."""


class WorkCancelledItself(Exception):
    """Work raised `CancelledError` though nobody cancelled it: a failure of the work, not of the call."""
