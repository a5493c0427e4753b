"""A carrier's stream as the wire of a call: audio as all streams, transfer by the carrier's REST API."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence

from voice_agent.call.wire import CallInputs
from voice_agent.channels.carriers.api import ApiFault
from voice_agent.channels.carriers.carrier import Carrier
from voice_agent.channels.carriers.pending import Expected
from voice_agent.channels.streaming.connection import Receive, Send
from voice_agent.channels.streaming.serializer import Inbound, Serializer
from voice_agent.channels.streaming.wire import StreamWire
from voice_agent.digits import DIGITS_SENT, NO_DIGITS, PAUSE, PAUSE_S, DigitsReason, DigitsResult
from voice_agent.transfers import TransferResult, TransferTarget

log = logging.getLogger(__name__)

HANG_UP_S = 6.0
"""Limit on ending a leg; the API's own limit lies within."""
CARRIERS_KEY_S = 0.3
"""How long carriers take for a key, about: they are asked at once and press one after the other."""


class Leg:
    """The carrier's side of a call.

    Attributes:
        over: It has ended, or is not ours any more.
    """

    def __init__(self, carrier: Carrier, expected: Expected) -> None:
        self._carrier, self._expected = carrier, expected
        self.over = False

    async def transfer(self, target: TransferTarget) -> TransferResult:
        """Hand the caller over."""
        try:
            result = await self._carrier.transfer(self._expected.call, target)
        except ApiFault as fault:
            return fault.transfer_result
        self.over = self.over or result.completed
        return result

    async def send_digits(self, digits: str) -> DigitsResult:
        """Press keys and pauses. The carrier is asked for the keys between two pauses at a time: each has its own word
        for a pause, or none."""
        if not self._carrier.can_press:
            return NO_DIGITS
        try:
            for part in re.findall(f"{PAUSE}+|[^{PAUSE}]+", digits):
                if part.startswith(PAUSE):
                    await asyncio.sleep(PAUSE_S * len(part))
                    continue
                await self._carrier.press(self._expected.call, part)
                await asyncio.sleep(CARRIERS_KEY_S * len(part))
        except ApiFault as fault:
            return DigitsResult(DigitsReason.TRUNK_ERROR if fault.status else DigitsReason.TIMEOUT, str(fault))
        return DIGITS_SENT

    async def end(self) -> None:
        """End it, if closing the stream does not. Bounded; what fails is logged."""
        if self.over or self._carrier.leg_ends_with_stream:
            return
        self.over = True
        try:
            async with asyncio.timeout(HANG_UP_S):
                await self._carrier.hang_up(self._expected.call)
        except (ApiFault, TimeoutError) as fault:
            log.warning("the carrier did not hang up: %s", fault)


class CarrierWire(StreamWire):
    """Implements `voice_agent.call.wire.TransferringWire` and `PressingWire`."""

    def __init__(
        self, receive: Receive, send: Send, serializer: Serializer, early: Sequence[Inbound], leg: Leg
    ) -> None:
        super().__init__(receive, send, serializer, early)
        self._leg = leg
        self._transferred = asyncio.Event()
        self._transferred.set()

    async def run(self, call: CallInputs) -> str:
        reason = await super().run(call)
        if reason == "hang_up":
            self._leg.over = True
        # The stream ends because the caller is put through: the answer to that comes first.
        await self._transferred.wait()
        return reason

    async def transfer(self, target: TransferTarget) -> TransferResult:
        self._transferred.clear()
        try:
            return await self._leg.transfer(target)
        finally:
            self._transferred.set()

    async def send_digits(self, digits: str) -> DigitsResult:
        return await self._leg.send_digits(digits)
