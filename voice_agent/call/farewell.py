"""Takes leave of a caller whose call the service must end: not in mid-sentence, and not later than it may.

::

    asked to leave        ▼
    agent    ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇│ phrase ends   "… I have to end this call now …" ▶ hang up
    limit                 ├────────────────────────────────────────────────────────┤ ends in any case
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from voice_agent.call.mouth import Mouth
from voice_agent.call.turn import Entry
from voice_agent.call.turns import TurnRunner
from voice_agent.dialogue.cancellation import CancelReason

SERVICE_ENDING = "utter_service_ending"
PHRASE_SHARE = 0.5
"""Share of the limit that the phrase which is being said may use."""
TAIL_S = 0.06
"""How much longer than its audio a phrase is given: the far end plays it a little later."""


class Farewell:
    """Takes leave in one call.

    Args:
        end: Ends the call.
    """

    def __init__(self, runner: TurnRunner, mouth: Mouth, end: Callable[[CancelReason], None]) -> None:
        self._runner, self._mouth, self._end = runner, mouth, end
        self._asked = asyncio.Event()
        self._limit_s = 0.0

    def ask(self, limit_s: float) -> None:
        """Begin to take leave; the call is over within ``limit_s``. The first word counts."""
        if not self._asked.is_set():
            self._limit_s = limit_s
            self._asked.set()

    async def run(self) -> None:
        """Wait until asked, and take leave."""
        await self._asked.wait()
        now = asyncio.get_running_loop().time
        deadline = now() + self._limit_s
        self._runner.inbox.clear()
        phrase_s = self._mouth.finish_phrase()
        if phrase_s > 0:
            await asyncio.sleep(min(phrase_s + TAIL_S, self._limit_s * PHRASE_SHARE))
        self._runner.cancel(CancelReason.SHUTDOWN)
        self._runner.inbox.clear()
        self._runner.inbox.add(Entry(line=SERVICE_ENDING, hang_up=CancelReason.SHUTDOWN.value))
        await asyncio.sleep(max(0.0, deadline - now()))
        self._end(CancelReason.SHUTDOWN)
