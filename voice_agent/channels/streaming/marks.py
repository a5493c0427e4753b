"""Marks by which a far end is asked whether it has played everything."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from voice_agent.call.wire import MarkMessage
from voice_agent.channels.streaming.serializer import DRAIN_MARK


class DrainMarks:
    """The questions of one call that are not answered yet."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[None]] = {}
        self._names = map(f"{DRAIN_MARK}{{}}".format, itertools.count(1))

    def reached(self, name: str) -> bool:
        """The far end has come to a mark. Returns whether it is one of these."""
        asked = self._open.pop(name, None)
        if asked is not None:
            asked.set_result(None)
        return asked is not None

    async def ask(self, send: Callable[[MarkMessage], None], over: asyncio.Future[Any], limit_s: float) -> bool:
        """Send a mark behind all audio; return whether the far end comes to it in ``limit_s`` and before ``over``."""
        name, come = next(self._names), asyncio.get_running_loop().create_future()
        self._open[name] = come
        try:
            send(MarkMessage(name))
            await asyncio.wait({come, over}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open.pop(name, None)
        return come.done()
