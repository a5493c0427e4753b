"""Says "one moment" when a turn is slow: at most once a turn, from the response cache, and never over the caller.

::

    caller   ▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
                  │ commit
                  ├─ after_ms ─┤ nothing was spoken
    agent    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▒▒▒▒▒▒▒▒▇▇▇▇▇▇    the reply came here ─┐
                                  ▲      └ and begins once the phrase is over
                                  └──────────────────────────────────┘

The filler is a phrase beside the reply: it takes time, but none of its words count as the reply's. One timer at a
time, set when a turn begins; nothing looks at a clock in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from voice_agent.call.turn import Turn

FILLER = "utter_filler"
LATE_VOICE_S = 0.5
"""How much longer words that are already with the voice are waited for: a filler would only delay them."""


class Filler:
    """The filler of one call.

    Args:
        after_ms: Time from the start of a turn; 0 never says any.
        may_speak: Whether the agent may begin to speak now: nobody speaks, and nothing of the turn was audible.
        say: Says the filler number ``n`` of the call in a turn.
    """

    def __init__(self, after_ms: int, may_speak: Callable[[], bool], say: Callable[[Turn, int], None]) -> None:
        self._after_s, self._may_speak, self._say = after_ms / 1000, may_speak, say
        self._turn: Turn | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waited = False
        self._said = 0

    def begin(self, turn: Turn) -> None:
        """A turn has begun. Only one that answers the caller can be slow."""
        if self._after_s > 0 and turn.entry.from_caller:
            self._turn, self._waited = turn, False
            self._arm(self._after_s)

    def quiet(self) -> None:
        """The caller has stopped speaking without taking the floor: a filler that became due meanwhile is said now."""
        if self._turn is not None and self._timer is None:
            self._due()

    def end(self) -> None:
        """The turn is over. Idempotent."""
        self._turn = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        turn = self._turn
        if turn is None or turn.token.is_cancelled or turn.timeline.first_audio is not None:
            self._turn = None
        elif turn.ledger.text.strip() and not self._waited:
            self._waited = True
            self._arm(LATE_VOICE_S)
        elif self._may_speak():
            self._turn = None
            self._say(turn, self._said)
            self._said += 1
