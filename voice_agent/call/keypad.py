"""Presses the keys of a telephone for the agent, on a line that has somebody else's menu at its end.

::

    what was said ▇▇▇▇▇▇▇│ far end ▒▒│ 4 ▪ 2 ▪ # ▪ │ the agent goes on
    the far end speaks   not pressed │ pressed to the end; what was said meanwhile is answered after it
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from voice_agent.audio.dtmf import tones
from voice_agent.call.floor import Event
from voice_agent.call.mouth import Mouth
from voice_agent.call.parting import FloorHolder, Parting
from voice_agent.call.turn import Turn
from voice_agent.call.wire import PressingWire, Wire
from voice_agent.dialogue.cancellation import TurnCancelled, limited, race
from voice_agent.digits import DIGITS_SENT, NO_DIGITS, DigitsReason, DigitsResult, seconds_of
from voice_agent.telemetry.metrics import DIGITS_PRESSED

log = logging.getLogger(__name__)

MARGIN_S = 8.0
"""How much longer than the keys themselves a wire may take: a provider's API answers within 5 s."""


class Keypad:
    """Keys that the agent presses in one call.

    Args:
        grace_s: How long a wire may take to give up after the other side has gone.
    """

    def __init__(self, wire: Wire, parting: Parting, grace_s: float) -> None:
        self._wire, self._parting, self._grace_s = wire, parting, grace_s
        self._mouth: Mouth
        self._floor: FloorHolder

    def attach(self, mouth: Mouth, floor: FloorHolder) -> None:
        """Close the ring: mouth and floor know the turns, and this them."""
        self._mouth, self._floor = mouth, floor

    @property
    def possible(self) -> bool:
        """Whether there is a telephone line to press keys on."""
        return self._wire.traits.can_send_digits

    async def run(self, turn: Turn, digits: str) -> DigitsResult:
        """Press ``digits`` once all that ``turn`` has said was heard. From the first key on, all are pressed.

        Raises:
            TurnCancelled: The other side has spoken before that, or has gone.
        """
        if not self.possible:
            return NO_DIGITS
        self._mouth.finish(turn)
        await self._parting.depart(turn)
        try:
            result = await self._press(turn, digits)
        finally:
            self._mouth.hush()
        DIGITS_PRESSED.labels(result=result.reason.value).inc()
        log.info("digits pressed", extra={"result": result.reason.value})
        self._floor.on(Event.STAYED)
        self._mouth.go_on(turn)
        return result

    async def _press(self, turn: Turn, digits: str) -> DigitsResult:
        """Let the wire do it, or the audio. Never raises but for somebody who has gone."""
        try:
            with limited(turn.token, seconds_of(digits) + MARGIN_S) as own:
                result = NO_DIGITS
                if isinstance(self._wire, PressingWire):
                    pressing = self._wire.send_digits(digits)
                    result = (await race(pressing, own, name="digits", grace_s=self._grace_s)).value
                if result.reason is DigitsReason.NOT_SUPPORTED:
                    await race(self._sound(digits), own, name="digits", grace_s=self._grace_s)
                    result = DIGITS_SENT
                return result
        except TurnCancelled:
            turn.token.check()
            return DigitsResult(DigitsReason.TIMEOUT)
        except Exception as fault:
            log.exception("the wire failed to press keys")
            return DigitsResult(DigitsReason.TRUNK_ERROR, type(fault).__name__)

    async def _sound(self, digits: str) -> None:
        """Play them as tones to their end."""
        over = asyncio.Event()

        def frames() -> Iterator[bytes]:
            yield from tones(digits)
            over.set()

        self._mouth.ring(frames())
        await over.wait()
