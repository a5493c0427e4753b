"""Ending what belongs to the network, with a deadline, whatever else is going on.

HTTP clients close their connection inside the task that is cancelled, under an anyio shield. Such
a shield does not protect against a second native ``Task.cancel()``: it cuts the closing short, and
the connection stays open. So network work lives in a task of its own, which is cancelled once::

    reader  ──────●cancel──────●cancel again        waits on, raises at the end
    work    ──────●──closing response────▶ ended    sees one cancellation only
    limit         ├───── seconds ──────┤            past it: left, logged, counted
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from voice_agent.telemetry.metrics import ABANDONED_TASKS

log = logging.getLogger(__name__)

# What did not end in time is referenced here until it does, so that it is not collected in mid-flight.
_abandoned: set[asyncio.Task[Any]] = set()


async def end_within(task: asyncio.Task[Any], seconds: float, name: str) -> bool:
    """Cancel ``task`` once and wait for its end, at most ``seconds``. Returns whether it ended in time.

    Raises:
        CancelledError: The waiter was cancelled meanwhile; raised only after the wait.
    """
    task.cancel()
    return await _wait(task, seconds, name)


async def close_within(closing: Coroutine[Any, Any, object], seconds: float, name: str) -> bool:
    """Run ``closing`` to its end, even while being cancelled, at most ``seconds``; then it is cancelled and left.

    Returns:
        Whether it ended in time. Its own errors are logged, not raised.
    """
    task = asyncio.get_running_loop().create_task(closing, name=name)
    try:
        return await _wait(task, seconds, name)
    finally:
        task.cancel()


async def _wait(task: asyncio.Task[Any], seconds: float, name: str) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    interrupted = False
    while not task.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            interrupted = True
    ended = task.done()
    if not ended:
        ABANDONED_TASKS.labels(kind=name).inc()
        log.warning("%s did not end within %.1f s", name, seconds)
        _abandoned.add(task)
    task.add_done_callback(_ended)
    if interrupted:
        raise asyncio.CancelledError
    return ended


def _ended(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.debug("%s ended with %r", task.get_name(), error)
