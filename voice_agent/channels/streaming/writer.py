"""The task that sends on a streaming wire, and what waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from voice_agent.channels.outbox import MAX_AUDIO_S, Outbox
from voice_agent.channels.streaming.connection import Send

log = logging.getLogger(__name__)

STUCK_S = 10.0
"""A client that takes nothing for this long while its outbox overflows is gone."""


class Writer:
    """Sends the items of its outbox, in order.

    Attributes:
        outbox: What waits. Call `wake` after adding to it.
        close_sent: The close of the socket has left, or is on its way.
    """

    def __init__(self, send: Send, stamp: Callable[[str], str] | None = None, max_audio_s: float = MAX_AUDIO_S) -> None:
        """Args: ``stamp`` completes texts as they leave; ``max_audio_s``: agent audio kept for a far end that does not
        read. Must be made on the running loop.
        """
        self._send, self._stamp = send, stamp
        self._loop = asyncio.get_running_loop()
        self.outbox = Outbox(max_audio_s)
        self.close_sent = False
        self._sleeps: asyncio.Future[None] | None = None
        self._blocked_since: float | None = None

    async def run(self) -> None:
        """Send until the close was sent.

        Raises:
            OSError, RuntimeError: The far end went while something was sent; some ASGI servers raise the latter.
        """
        outbox, send, stamp = self.outbox, self._send, self._stamp
        while True:
            while outbox:
                item = outbox.take()
                if item["type"] == "websocket.close":
                    self.close_sent = True
                elif stamp is not None and "text" in item:
                    item["text"] = stamp(item["text"])
                await send(item)
                self._blocked_since = None
                if self.close_sent:
                    return
            self._sleeps = self._loop.create_future()
            await self._sleeps

    def wake(self) -> None:
        """Something was added to the outbox."""
        if self._sleeps is not None and not self._sleeps.done():
            self._sleeps.set_result(None)

    def add_audio(self, message: str | bytes) -> bool:
        """Queue one piece of audio. Returns False when the far end takes nothing any more."""
        blocked_for_s = 0.0
        if not self.outbox.add_audio(message):
            # The client reads too slowly, or no more: `run` resets the time with each item it gets rid of.
            now = self._loop.time()
            self._blocked_since = now if self._blocked_since is None else self._blocked_since
            blocked_for_s = now - self._blocked_since
        self.wake()
        if blocked_for_s > STUCK_S:
            log.warning("the client took no audio for %.0f s; it counts as gone", STUCK_S)
            return False
        return True
