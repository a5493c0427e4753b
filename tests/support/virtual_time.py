"""An event loop whose clock jumps to the next timer as soon as nothing else is ready.

Decorate an async test with `virtual_time` and an hour passes in milliseconds. The decorator also
checks that the test leaves no task behind. Threads and real sockets do not fit in here: the loop
sees nothing scheduled and reports a deadlock.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class _JumpingSelector(selectors.DefaultSelector):
    """Reports ready files as usual; where the loop would sleep, moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: no task is ready and no timer is set")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtual(main: Coroutine[Any, Any, Any]) -> Any:
    """Run ``main`` in virtual time; fail if it leaves a task that is not its own."""

    async def checked() -> Any:
        own = asyncio.current_task()
        result = await main
        await asyncio.sleep(0)
        left = [t for t in asyncio.all_tasks() if t is not own]
        assert not left, f"tasks left behind: {[t.get_name() for t in left]}"
        return result

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(checked())


def virtual_time(test: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Turn an async test into one that runs in virtual time."""

    @functools.wraps(test)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return run_virtual(test(*args, **kwargs))

    wrapper.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    return wrapper
