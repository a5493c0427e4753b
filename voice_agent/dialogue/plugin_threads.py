"""Runs functions of plugins that are not ``async`` beside the event loop, in threads that nobody has to wait for.

A thread cannot be ended from outside: one that hangs goes on by itself, keeps its function from being started
again, and dies with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any

MAX_THREADS = 32
"""Functions of plugins at work at once in the process."""

_free = threading.BoundedSemaphore(MAX_THREADS)


class ThreadRefused(Exception):
    """The function was not started: too many are at work."""


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` in a thread of its own and return what it returns.

    Raises:
        ThreadRefused: `MAX_THREADS` are at work.
        Exception: What it raised; what is no `Exception` is told as a `RuntimeError`.
    """
    if not _free.acquire(blocking=False):
        raise ThreadRefused(f"{MAX_THREADS} functions of plugins are at work already")
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(value: Any, fault: Exception | None) -> None:
        if done.done():
            return
        if fault is None:
            done.set_result(value)
        else:
            done.set_exception(fault)

    def work() -> None:
        value: Any = None
        fault: Exception | None = None
        try:
            value = context.run(function, *arguments)
        except StopIteration as stop:  # a future cannot carry it
            fault = RuntimeError(f"raised {type(stop).__name__}")
        except Exception as raised:  # noqa: BLE001
            fault = raised
        except BaseException as raised:  # noqa: BLE001 - such as `SystemExit`: it ends this thread and nothing else
            fault = RuntimeError(f"raised {type(raised).__name__}")
        finally:
            _free.release()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, value, fault)

    threading.Thread(target=work, name="plugin", daemon=True).start()
    return await done
