"""One turn of a conversation at a time: who comes while one runs waits for its end."""

from __future__ import annotations

import asyncio

from voice_agent.dialogue.cancellation import CancelToken, race


class TurnQueue:
    """Lets one turn in at a time. Whoever entered leaves again."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a turn is in."""
        return self._lock.locked()

    async def enter(self, cancel: CancelToken | None = None) -> None:
        """Wait until the turn before this one has ended.

        Raises:
            TurnCancelled: This turn was cancelled while it waited; it never began.
        """
        if cancel is None or not self._lock.locked():
            await self._lock.acquire()
            return
        held: list[bool] = []

        async def acquire() -> None:
            held.append(await self._lock.acquire())

        try:
            await race(acquire(), cancel, name="turn queue")
        except BaseException:
            # Torn down in the very moment it got the lock: nobody else could ever release it.
            if held:
                self._lock.release()
            raise

    def leave(self) -> None:
        """The turn has ended."""
        self._lock.release()
