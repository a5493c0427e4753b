"""The point of no return of whatever ends a call: a hang-up or a transfer.

::

    goodbye, announcement   ▇▇▇▇▇▇▇▇▇▇▇▇▇▇│ far end plays ▒▒▒│ here
    the caller objects      ├─────── rolled back ────────────┤ nothing is rolled back any more
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from voice_agent.call.floor import Event, State
from voice_agent.call.inbox import Inbox
from voice_agent.call.turn import Turn
from voice_agent.call.wire import Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason, TurnCancelled, race

log = logging.getLogger(__name__)

DRAIN_MARGIN_S = 0.5
"""How much later than its own limit a wire may tell that it did not drain."""


class FloorHolder(Protocol):
    """Raises events on the floor and carries out its commands."""

    @property
    def state(self) -> State: ...

    def on(self, event: Event) -> None: ...

    def take(self) -> None:
        """The caller takes the floor from the turn that runs."""
        ...

    async def settled(self) -> None:
        """Wait until no decision about the caller's voice is pending."""
        ...


class Parting:
    """Waits for the points of no return of one call."""

    def __init__(self, wire: Wire, options: TurnTaking, inbox: Inbox) -> None:
        self._wire, self._options, self._inbox = wire, options, inbox
        self._floor: FloorHolder

    def attach(self, floor: FloorHolder) -> None:
        """Close the ring: the floor knows the turns, and this the floor."""
        self._floor = floor

    async def passed(self, turn: Turn) -> bool:
        """Wait until all that was said was heard at the far end and nobody objects to what follows.

        Returns:
            False if the turn was cancelled, or the caller has said something that is answered first.
        """
        while True:
            await turn.over.wait()
            if turn.token.is_cancelled:
                return False
            if self._floor.state in (State.THINKING, State.SPEAKING):
                self._floor.on(Event.GOODBYE)
                turn.draining = True
                if not await self._drain(turn):
                    return False
                turn.draining = False
            # A voice that came meanwhile is decided first.
            if self._floor.state is State.LEAVING:
                # Words that were kept for after the goodbye keep the call: nobody is cut off in mid-request.
                # What the service itself ends, at the longest duration of a call, stays ended.
                may_stay = self._options.interruptible_goodbye and turn.entry.hang_up is None
                return not (may_stay and self._inbox.awaits_answer)
            if self._floor.state is State.CLOSED:
                return False
            await self._floor.settled()

    async def depart(self, turn: Turn) -> None:
        """Wait as `passed` does, and take no objection from then on: until `Event.STAYED` the floor is nobody's.

        Raises:
            TurnCancelled: The caller objected in time, or has gone.
        """
        if not await self.passed(turn):
            if not turn.token.is_cancelled:
                self._floor.take()
            turn.token.cancel(CancelReason.BARGE_IN)
            turn.token.check()
        self._floor.on(Event.DEPARTED)

    async def _drain(self, turn: Turn) -> bool:
        """Wait, not for ever, until the far end has played everything; False if the turn was cancelled meanwhile."""
        limit_s = self._options.drain_timeout_s
        try:
            async with asyncio.timeout(limit_s + DRAIN_MARGIN_S):
                await race(self._wire.drain(limit_s), turn.token, name="drain", grace_s=DRAIN_MARGIN_S)
        except TurnCancelled:
            return False
        except TimeoutError:
            log.warning("the wire did not drain within %.1f s", limit_s)
        except Exception:
            log.exception("the wire failed to drain")
        return True
