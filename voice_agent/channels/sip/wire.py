"""The call's side of a SIP call: media by RTP, and what the call asks of the signalling. No task of its own."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from voice_agent.call.clock import MediaClock
from voice_agent.call.wire import CallInputs, WireMessage, WireTraits
from voice_agent.channels.intake import Intake
from voice_agent.channels.sip.answering import Answering
from voice_agent.channels.sip.media import MediaReceiver, MediaSender
from voice_agent.channels.sip.outflow import FRAME_S, Outflow
from voice_agent.channels.sip.ports import MediaPort, MediaPorts
from voice_agent.channels.sip.presses import Pressing
from voice_agent.channels.sip.sdp import Agreed, Direction
from voice_agent.channels.sip.transactions import Address
from voice_agent.digits import NO_DIGITS, DigitsReason, DigitsResult
from voice_agent.telemetry.metrics import AUDIO_DROPPED
from voice_agent.transfers import TransferReason, TransferResult, TransferTarget

log = logging.getLogger(__name__)

CHANNEL = "sip"
FAR_BUFFER_S = 0.12
"""What telephones and exchanges hold back before they play."""
HANG_UP_S = 1.4
"""Limit on audio that is still under way when the agent hangs up."""
REPORT_S = 5.0
"""A receiver report this often (RFC 3550's shortest interval)."""
TRANSFER_S = 1.0
"""How long the end of a call waits for the transfer that brought it about."""


class Signalling(Protocol):
    """What a wire asks of its dialog."""

    async def hang_up(self) -> None:
        """End the dialog. Bounded, idempotent."""
        ...

    async def refer(self, target: TransferTarget) -> TransferResult:
        """Ask the far end to call somebody else."""
        ...


class SipWire:
    """Implements `voice_agent.call.wire.TransferringWire` and `PressingWire`. Make it on the event loop."""

    traits = WireTraits(CHANNEL, can_transfer=True, can_send_digits=True)

    def __init__(self, clock: MediaClock, ports: MediaPorts) -> None:
        self._clock, self._ports = clock, ports
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self.signalling: Signalling
        self._port: MediaPort | None = None
        self._sender: MediaSender | None = None
        self._receiver: MediaReceiver | None = None
        self._agreed: Agreed | None = None
        self._outflow = Outflow(now)
        self._intake: Intake | None = None
        self._call: CallInputs | None = None
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._transferring: asyncio.Future[TransferResult] | None = None
        self._pressing: Pressing | None = None
        self._closing = False
        self._dropped_s = 0.0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.media_came = asyncio.Event()
        self.answering: Answering | None = None

    # What the signalling tells

    async def open(self) -> int:
        """Open the port for media; return its number. Raises: NoPort."""
        self._port = await self._ports.open(self._has_packet)
        return self._port.number

    def agree(self, agreed: Agreed, hosts: frozenset[str]) -> None:
        """Speak what is agreed from now on. ``hosts``: where media may come from beside the agreed address."""
        hosts |= {agreed.address}
        before, self._agreed = self._agreed, agreed
        if self._sender is None or self._receiver is None:
            self._sender, self._receiver = MediaSender(agreed), MediaReceiver(agreed, hosts, self._loop.time())
        elif before is not None and before != agreed:
            if before.codec is not agreed.codec:
                self._sender.agree(agreed)
                self._intake = None
            if (before.address, before.port, before.codec) != (agreed.address, agreed.port, agreed.codec):
                self._receiver.agree(agreed, hosts)
            self._sender.number(agreed)
            self._receiver.number(agreed)
        if self._intake is None:
            self._intake = Intake(agreed.codec.rate, self._loop.time())
        if self._pressing is not None and (agreed.held or agreed.dtmf_type is None):
            # What would be pressed now reaches nobody.
            self._pressing.stop(DigitsResult(DigitsReason.TRUNK_ERROR, "on hold" if agreed.held else "no events"))
        if self._call is not None and before is not None and before.held != agreed.held:
            self._call.hold(agreed.held)

    def end_by_caller(self) -> None:
        """The far end has hung up."""
        self._end("hang_up")

    def end_by_loss(self) -> None:
        """The dialog broke."""
        self._end("disconnected")

    def press_key(self, digit: str) -> None:
        """A key that came by the signalling."""
        if self._call is not None and not self._over.done():
            self._call.press_key(digit)

    # Wire

    async def run(self, call: CallInputs) -> str:
        self._call = call
        unsubscribe = self._clock.subscribe(self._tick)
        self._timers["report"] = self._loop.call_later(REPORT_S, self._report)
        if self._agreed is not None and self._agreed.held:
            call.hold(True)
        try:
            reason = await asyncio.shield(self._over)
            if self._transferring is not None:
                # Where the call was taken over, the transfer is what ended it.
                await asyncio.wait({self._transferring}, timeout=TRANSFER_S)
            return reason
        finally:
            unsubscribe()
            self._call = None
            self._end("disconnected")

    def close(self) -> None:
        """Let go of the media port, whatever ended the call."""
        self._end("closed")
        if self._port is not None:
            self._port.close()
            self._port = None

    def send_audio(self, frame: bytes) -> None:
        if self._closing:
            return
        if not self._outflow.add(frame):
            AUDIO_DROPPED.labels(channel=CHANNEL).inc(FRAME_S)
        self._send_due(tick=False)

    def clear(self) -> None:
        if not self._closing:
            self._outflow.clear(self._loop.time())

    def send(self, message: WireMessage) -> None:
        """Nothing but sound reaches a telephone."""

    async def drain(self, timeout_s: float) -> bool:
        """True once all audio has left and, at the speed of speech and behind the far end's buffer, was played."""
        deadline = self._loop.time() + timeout_s
        while not self._over.done():
            now = self._loop.time()
            unplayed_s = self._outflow.plays_until + FAR_BUFFER_S - now
            if not self._outflow.waiting and unplayed_s <= 0:
                return True
            if now >= deadline:
                return False
            await asyncio.wait({self._over}, timeout=min(max(unplayed_s, FRAME_S), deadline - now))
        return False

    async def hang_up(self, reason: str) -> None:
        if self._closing:
            await asyncio.wait({self._over}, timeout=HANG_UP_S)
        else:
            self._closing = True
            await self.drain(HANG_UP_S)
            await self.signalling.hang_up()
        self._end("closed")

    async def transfer(self, target: TransferTarget) -> TransferResult:
        if target.warm:
            return TransferResult(TransferReason.NOT_SUPPORTED, "SIP puts callers through blindly")
        transferring = self._transferring = self._loop.create_future()
        result = TransferResult(TransferReason.TRUNK_ERROR)
        try:
            result = await self.signalling.refer(target)
            return result
        finally:
            transferring.set_result(result)

    async def send_digits(self, digits: str) -> DigitsResult:
        agreed = self._agreed
        if agreed is None or agreed.dtmf_type is None:
            return NO_DIGITS
        if agreed.held or self._over.done():
            return DigitsResult(DigitsReason.TRUNK_ERROR, "on hold" if agreed.held else "over")
        pressed: asyncio.Future[DigitsResult] = self._loop.create_future()
        self._pressing = Pressing(digits, lambda result: None if pressed.done() else pressed.set_result(result))
        ends: set[asyncio.Future[Any]] = {pressed, self._over}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._pressing = None
        return pressed.result() if pressed.done() else DigitsResult(DigitsReason.TRUNK_ERROR, "over")

    # Out

    def _tick(self) -> None:
        self._send_due(tick=True)

    def _send_due(self, *, tick: bool) -> None:
        agreed, sender, port = self._agreed, self._sender, self._port
        if agreed is None or sender is None or port is None:
            return
        to = self._destination(agreed)
        for due in self._outflow.due(self._loop.time(), tick=tick):
            press = None if self._pressing is None else self._pressing.take()
            if press is not None and agreed.dtmf_type is not None:
                packet = sender.press(press, due.skipped)
            else:
                packet = sender.packet(due.pcm, due.skipped, first=due.first)
            if agreed.direction in (Direction.BOTH, Direction.SEND):
                port.send(packet, to)

    def _destination(self, agreed: Agreed) -> Address:
        """Where the far end's media comes from, which holds behind routers too; until then where it says."""
        peer = self._receiver.peer if self._receiver is not None else None
        return peer or (agreed.address, agreed.port)

    def _report(self) -> None:
        agreed, receiver, sender, port = self._agreed, self._receiver, self._sender, self._port
        if agreed and receiver and sender and port and receiver.source is not None:
            port.report(receiver.reception.report(sender.ssrc, receiver.source), self._destination(agreed))
        self._timers["report"] = self._loop.call_later(REPORT_S, self._report)

    # In

    def _has_packet(self, data: bytes, source: Address) -> None:
        receiver = self._receiver
        if receiver is None or self._over.done():
            return
        now = self._loop.time()
        received = receiver.take(data, source, now)
        if received is None:
            return
        self.media_came.set()
        if self._call is None:
            return
        if received.pcm:
            self._hear(received.pcm, now)
        if received.key:
            self._call.press_key(received.key)
        self._wait_for_the_missing(now)

    def _wait_for_the_missing(self, now: float) -> None:
        assert self._receiver is not None
        wait_s = self._receiver.buffer.wait_s(now)
        if wait_s is not None and "missing" not in self._timers:
            self._timers["missing"] = self._loop.call_later(wait_s, self._give_up_the_missing)

    def _give_up_the_missing(self) -> None:
        self._timers.pop("missing", None)
        receiver, now = self._receiver, self._loop.time()
        if receiver is None or self._call is None:
            return
        if pcm := receiver.release(now):
            self._hear(pcm, now)
        self._wait_for_the_missing(now)

    def _hear(self, pcm: bytes, now: float) -> None:
        intake, call = self._intake, self._call
        assert intake is not None and call is not None
        if self.answering is not None and self._agreed is not None:
            self.answering.push(pcm, self._agreed.codec.rate, now)
        if heard := intake.push(pcm, now):
            call.hear(heard)
        if intake.waiting and "backlog" not in self._timers:
            self._timers["backlog"] = self._loop.call_later(intake.wait_s(now) or 0.0, self._catch_up)
        if intake.dropped_s > self._dropped_s:
            AUDIO_DROPPED.labels(channel=CHANNEL).inc(intake.dropped_s - self._dropped_s)
            self._dropped_s = intake.dropped_s

    def _catch_up(self) -> None:
        self._timers.pop("backlog", None)
        intake, call, now = self._intake, self._call, self._loop.time()
        if intake is None or call is None:
            return
        if heard := intake.release(now):
            call.hear(heard)
        wait_s = intake.wait_s(now)
        if wait_s is not None:
            self._timers["backlog"] = self._loop.call_later(wait_s, self._catch_up)

    def _end(self, reason: str) -> None:
        """End the run, once; later reasons do not count."""
        self._closing = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if not self._over.done():
            self._over.set_result(reason)
