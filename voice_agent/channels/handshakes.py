"""Connections that have not said which call they are: so many at once, and the newest have the better right.

A genuine far end speaks at once, one that holds a place does not: where the places are used up, the oldest makes room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)

MAX_HANDSHAKES = 200
"""Handshakes of one channel at once."""
WARN_EVERY_S = 10.0
"""How often the log says that handshakes were closed for newer ones."""


class MadeRoom(Exception):
    """The handshake was the oldest, and was closed for a newer one."""


class Handshakes:
    """The unfinished handshakes of one channel.

    Args:
        limit: Handshakes at once.
    """

    def __init__(self, limit: int = MAX_HANDSHAKES) -> None:
        self._limit = limit
        self._open: dict[asyncio.Timeout, None] = {}  # the oldest first
        self._closed, self._warn_at = 0, 0.0

    @asynccontextmanager
    async def place(self, channel: str, seconds: float) -> AsyncIterator[None]:
        """Run one handshake; where all places are taken, in that of the oldest.

        Args:
            channel: Its name, for the log.

        Raises:
            TimeoutError: It was not finished within ``seconds``.
            MadeRoom: It was cut short for a newer one.
        """
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                if len(self._open) >= self._limit:
                    self._make_room(channel)
                self._open[timeout] = None
                yield
        except TimeoutError:
            if timeout.expired() and timeout not in self._open:
                raise MadeRoom from None
            raise
        finally:
            self._open.pop(timeout, None)

    def _make_room(self, channel: str) -> None:
        oldest, now = next(iter(self._open)), asyncio.get_running_loop().time()
        del self._open[oldest]
        if not oldest.expired():  # else its time is over anyway, and its task about to see it
            oldest.reschedule(now)
        self._closed += 1
        if now >= self._warn_at:
            log.warning("%s: %d connections did not say which call they are, and made room", channel, self._closed)
            self._closed, self._warn_at = 0, now + WARN_EVERY_S
