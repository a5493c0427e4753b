"""Puts the caller through to somebody else, and lets them hear it ring.

::

    announcement ▇▇▇▇▇▇▇│ far end ▒▒│♪ ring ♪ ♪ ring ♪│ answered: the call has ended for the agent
                        objections  │ none any more   └ busy, no answer …: the agent goes on
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from voice_agent.audio.ringback import endless, ringback
from voice_agent.call.floor import Event
from voice_agent.call.mouth import Mouth
from voice_agent.call.parting import FloorHolder, Parting
from voice_agent.call.turn import Turn
from voice_agent.call.wire import TransferringWire, Wire
from voice_agent.dialogue.cancellation import TurnCancelled, limited, race
from voice_agent.telemetry.metrics import TRANSFERS
from voice_agent.transfers import NOT_SUPPORTED, TransferReason, TransferResult, TransferTarget

log = logging.getLogger(__name__)

MARGIN_S = 5.0
"""How much later than its own limit a wire may answer: setting up a call takes time before it rings."""

HoldAudio = Callable[[TransferTarget], Awaitable[bytes]]
"""Returns what a caller hears while it rings, canonical PCM."""


async def ringing_tone(target: TransferTarget) -> bytes:
    """Return a soft ringing tone, whatever the destination has configured."""
    return ringback()


class Transfers:
    """Transfers of one call.

    Args:
        hold_audio: What is heard meanwhile.
        grace_s: How long a wire may take to give up after the caller has gone.
    """

    def __init__(self, wire: Wire, parting: Parting, hold_audio: HoldAudio, grace_s: float) -> None:
        self._wire, self._parting, self._hold_audio, self._grace_s = wire, parting, hold_audio, grace_s
        self._mouth: Mouth
        self._floor: FloorHolder

    def attach(self, mouth: Mouth, floor: FloorHolder) -> None:
        """Close the ring: mouth and floor know the turns, and this them."""
        self._mouth, self._floor = mouth, floor

    @property
    def possible(self) -> bool:
        """Whether the wire can transfer at all."""
        return self._wire.traits.can_transfer and isinstance(self._wire, TransferringWire)

    async def run(self, turn: Turn, target: TransferTarget) -> TransferResult:
        """Put the caller through once all that ``turn`` has said was heard.

        Raises:
            TurnCancelled: The caller objected in time, or has gone.
        """
        wire = self._wire
        if not (self.possible and isinstance(wire, TransferringWire)):
            return NOT_SUPPORTED
        # Before anything is heard: a file that is slow to read must not become silence.
        sound = await self._sound(target)
        turn.token.check()
        self._mouth.finish(turn)
        await self._parting.depart(turn)
        self._mouth.ring(endless(sound))
        try:
            result = await self._ask(wire, turn, target)
        finally:
            self._mouth.hush()
        TRANSFERS.labels(result=result.reason.value).inc()
        log.info("transfer ended", extra={"destination": target.name, "result": result.reason.value})
        if result.completed:
            turn.transferred = target.name
        else:
            self._floor.on(Event.STAYED)
            self._mouth.go_on(turn)
        return result

    async def _ask(self, wire: TransferringWire, turn: Turn, target: TransferTarget) -> TransferResult:
        """Let the wire do it, bounded in time. Never raises but for a caller who has gone."""
        try:
            with limited(turn.token, target.timeout_s + MARGIN_S) as own:
                # A wire that comes to a result within its grace has come to it: a call that was taken over is gone.
                return (await race(wire.transfer(target), own, name="transfer", grace_s=self._grace_s)).value
        except TurnCancelled:
            turn.token.check()
            return TransferResult(TransferReason.TIMEOUT)
        except Exception as fault:
            log.exception("the wire failed to transfer")
            return TransferResult(TransferReason.TRUNK_ERROR, type(fault).__name__)

    async def _sound(self, target: TransferTarget) -> bytes:
        try:
            return await self._hold_audio(target) or ringback()
        except Exception as fault:  # noqa: BLE001 - a missing file costs its sound, not the transfer
            log.warning("callers hear a ringing tone instead of the sound of %s: %s", target.name, str(fault))
            return ringback()
