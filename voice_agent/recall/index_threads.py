"""The threads that an index is used on, so that the event loop never waits for a disk or a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from voice_agent.recall.index import IndexUnavailable

T = TypeVar("T")


class IndexThreads:
    """One thread reads and one writes, as an index has two connections: reading does not wait for a commit."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(1, "recall-reader")
        self._writers = ThreadPoolExecutor(1, "recall-writer")

    async def read(self, work: Callable[[], T]) -> T:
        """Do ``work`` on the reading thread.

        Raises:
            IndexUnavailable: The threads were closed before.
        """
        return await self._on(self._readers, work)

    async def write(self, work: Callable[[], T]) -> T:
        """Do ``work`` on the writing thread; see `read`."""
        return await self._on(self._writers, work)

    async def _on(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, work)
        except RuntimeError as fault:  # the thread was shut down before
            raise IndexUnavailable(str(fault)) from fault

    def close(self) -> None:
        """Let the threads end; what waits for them is dropped. Idempotent."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writers.shutdown(wait=False, cancel_futures=True)
