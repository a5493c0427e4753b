"""Runs functions of plugins that are not ``async`` beside the event loop, in threads that nobody has to wait for.

Threads are kept and used again. Whoever hands one a function may first stand still for a moment, as most functions
need less time than it takes to be woken by the loop once more::

    loop      ── give ┄┄┄┄┄ take ──▶                 back within `QUICK_S`: two hand-overs and nothing else
    worker       └── function ──┘

    loop      ── give ┄┄┄┄┄┄ goes on with other calls ── woken ── take ──▶
    worker       └── function ─────────────────────────────┘

Threads belong to a `PluginThreads` and end when it is closed. One that hangs cannot be ended from outside: it goes on
by itself, keeps its function from being started again, and ends when that comes back, or with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

MAX_THREADS = 32
"""Functions of the plugins of one service at work at once."""
QUICK_S = 0.0005
"""How long the loop stands still for one function: a fortieth of an audio frame."""


class ThreadRefused(Exception):
    """The function was not started: too many are at work, or the threads are closed."""


class Work:
    """One call of a function in a thread: either waited for where one stands, or through the loop."""

    __slots__ = ("_call", "_ended", "_fault", "_future", "_guard", "_loop", "_value", "seconds")

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._guard, self._ended = allocate_lock(), allocate_lock()
        self._ended.acquire()
        self.seconds = 0.0
        """How long the function took."""
        self._value: Any = None
        self._fault: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._future: asyncio.Future[None] | None = None

    @property
    def is_over(self) -> bool:
        return not self._ended.locked()

    def stand_by(self, limit_s: float) -> bool:
        """Stand still, at most this long, until it is over. Returns whether it is."""
        if not self._ended.acquire(timeout=limit_s):
            return False
        self._ended.release()
        return True

    def outcome(self) -> Any:
        """Return what the function returned, once it is over.

        Raises:
            Exception: What it raised; what is no `Exception` is told as a `RuntimeError`.
        """
        if self._fault is not None:
            raise self._fault
        return self._value

    async def wait(self) -> Any:
        """Wait until it is over, however long that takes, and return or raise what `outcome` does."""
        with self._guard:
            if not self.is_over:
                self._loop = asyncio.get_running_loop()
                self._future = self._loop.create_future()
        if self._future is not None:
            await self._future
        return self.outcome()

    def run(self) -> None:
        """Call the function; in the thread."""
        began = time.perf_counter()
        try:
            self._value = self._call()
        except StopIteration as stop:  # a coroutine cannot let it pass
            self._fault = RuntimeError(f"raised {type(stop).__name__}")
        except Exception as raised:  # noqa: BLE001
            self._fault = raised
        except BaseException as raised:  # noqa: BLE001 - such as `SystemExit`: it ends this call and nothing else
            self._fault = RuntimeError(f"raised {type(raised).__name__}")
        self.seconds = time.perf_counter() - began

    def end(self) -> None:
        """Tell whoever waits; in the thread."""
        with self._guard:
            self._ended.release()
            loop, future = self._loop, self._future
        if loop is not None and future is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_wake, future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Worker(threading.Thread):
    """A thread that does one thing after the other, and is among the free ones in between."""

    def __init__(self, free_again: Callable[[_Worker], bool]) -> None:
        super().__init__(name="plugin", daemon=True)
        self._free_again = free_again
        self._work: Work | None = None
        self._given = allocate_lock()
        self._given.acquire()

    def give(self, work: Work | None) -> None:
        """Hand it the next thing to do; None ends it. It is free."""
        self._work = work
        self._given.release()

    def run(self) -> None:
        goes_on = True
        while goes_on:
            self._given.acquire()
            work, self._work = self._work, None
            if work is None:
                return
            work.run()
            # Free first: who is told of the end may have the next thing to do at once.
            goes_on = self._free_again(self)
            work.end()
            del work


class PluginThreads:
    """Threads for the functions of one service's plugins. They begin when they are needed and end when it is closed.

    Args:
        limit: How many functions may be at work at once.
    """

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._limit = limit
        self._guard = allocate_lock()
        self._free: list[_Worker] = []
        self._count = 0
        self._closed = False

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Work:
        """Start ``function`` in a thread.

        Raises:
            ThreadRefused: As many as may be are at work, or this is closed.
        """
        context = contextvars.copy_context()
        work = Work(lambda: context.run(function, *arguments))
        self._worker().give(work)
        return work

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function`` in a thread and return what it returns.

        Raises:
            ThreadRefused: As many as may be are at work, or this is closed.
            Exception: What it raised; what is no `Exception` is told as a `RuntimeError`.
        """
        return await self.begin(function, *arguments).wait()

    def close(self) -> None:
        """End the threads: free ones now, others when what they are at has come back. Idempotent; waits for none."""
        with self._guard:
            self._closed = True
            free, self._free = self._free, []
            self._count -= len(free)
        for worker in free:
            worker.give(None)

    def _worker(self) -> _Worker:
        with self._guard:
            if self._closed:
                raise ThreadRefused("the service that the plugins belong to has ended")
            if self._free:
                return self._free.pop()
            if self._count >= self._limit:
                raise ThreadRefused(f"{self._limit} functions of plugins are at work already")
            self._count += 1
        worker = _Worker(self._free_again)
        try:
            worker.start()
        except RuntimeError as fault:
            with self._guard:
                self._count -= 1
            raise ThreadRefused(f"the system gives no more threads: {fault}") from fault
        return worker

    def _free_again(self, worker: _Worker) -> bool:
        """Note that ``worker`` has nothing to do; in its thread. Returns whether it is to go on."""
        with self._guard:
            if self._closed:
                self._count -= 1
            else:
                self._free.append(worker)
            return not self._closed
