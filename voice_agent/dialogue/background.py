"""Work that runs beside the turns: a bounded set of tasks with one owner who waits for them at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from voice_agent.dialogue.cancellation import abandon, contained

log = logging.getLogger(__name__)


class Background:
    """Tasks that nobody waits for while the call goes on.

    Args:
        limit: Tasks at once; what comes beyond is refused, so that slow work cannot pile up.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tasks: set[asyncio.Task[Any]] = set()
        self.refused = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> bool:
        """Run ``work``; what it raises is logged. Returns False, and drops it, when there is too much already."""
        if len(self._tasks) >= self._limit:
            work.close()
            self.refused += 1
            log.warning("%s is left out: %d others are still running", name, self._limit)
            return False
        task = asyncio.get_running_loop().create_task(contained(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return True

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("%s failed: %s: %s", task.get_name(), type(fault).__name__, fault)

    async def aclose(self, wait_s: float, grace_s: float = 0.5) -> None:
        """Wait for what is running, then cancel it, then abandon it. Idempotent."""
        tasks = set(self._tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=wait_s)
        for task in late:
            task.cancel()
        if late:
            _, deaf = await asyncio.wait(late, timeout=grace_s)
            for task in deaf:
                abandon(task, task.get_name())
