"""A limit on how long a cancelled turn may go on finishing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from voice_agent.dialogue.cancellation import CancelReason, CancelToken, race

BACKSTOP_S = 30.0
"""How long a cancelled turn may go on finishing (a tool that must not be cut) before it is abandoned."""

T = TypeVar("T")


class Backstop:
    """Guards one turn at a time; the limit runs from its cancellation."""

    def __init__(self) -> None:
        self._limit_s = BACKSTOP_S
        self._token: CancelToken | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, work: Coroutine[Any, Any, T], cancel: CancelToken, grace_s: float) -> T:
        """Await ``work``, which answers to ``cancel`` by itself.

        Raises:
            TurnCancelled: It did not end in time after its cancellation, and was abandoned.
        """
        token = self._token = CancelToken()
        forget = cancel.on_cancel(self._arm)
        try:
            return (await race(work, token, name="turn", grace_s=grace_s)).value
        finally:
            forget()
            self._token = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def hurry(self, limit_s: float) -> None:
        """The call ends: a turn that is still finishing has this long."""
        self._limit_s = limit_s
        if self._timer is not None:
            self._timer.cancel()
            self._arm()

    def _arm(self) -> None:
        if self._token is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limit_s, self._token.cancel, CancelReason.TIMEOUT)
