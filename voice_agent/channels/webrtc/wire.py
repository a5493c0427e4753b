"""The call's side of a browser's connection. No task of its own: packets, messages and one timer drive it.

::

    send_audio ─▶ ┌──────────────────┐ frames ─▶ Opus ─▶ RTP
    send ───────▶ │ pacer: in order, │                                 bounded; the oldest frame goes
    clear ══════▶ └─ at their time ──┘ messages ───────▶ data channel

    RTP ─▶ reorder ─▶ Opus ─▶ intake ─▶ call            losses become silence, floods are dropped

Positions: the wall clock counts what was sent at the time it is to be played; RTCP tells what arrived, not what
was played. A page that knows better reports `played`, and then that counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from voice_agent.audio.frames import SILENCE
from voice_agent.call.wire import (
    CallInputs,
    ErrorMessage,
    EventMessage,
    MarkMessage,
    MetricsMessage,
    WireMessage,
    WireTraits,
)
from voice_agent.channels import messages
from voice_agent.channels.controls import Controls
from voice_agent.channels.webrtc.opus import OPUS_RATE, PacketCache, SpeechEncoder
from voice_agent.channels.webrtc.pacer import FRAME_S, LATE_S, MAX_MESSAGES, PacedFrame, Pacer
from voice_agent.channels.webrtc.peer import Peer
from voice_agent.channels.webrtc.reception import Reception
from voice_agent.ice_addresses import IceOptions
from voice_agent.telemetry.metrics import AUDIO_DROPPED

log = logging.getLogger(__name__)

CHANNEL = "webrtc"
HANG_UP_S = 1.4
"""Limit on the agent's goodbye to a browser: audio that is still under way, and our message."""
LINGER_S = 0.3
"""Time for the hang-up message and the last audio to arrive, where the browser does not close first."""
FAR_BUFFER_S = 0.2
"""What a browser holds back before it plays: a page that closes at our hang-up has then heard the last of it."""
TAIL_FRAMES = 8
"""Silence sent after speech, so that the far end's buffer lets the last of it go."""
KEEP_ALIVE_S = 0.4
"""A packet of silence this often while nothing is said, as Opus itself does in discontinuous transmission."""


class WebRtcWire:
    """Implements `voice_agent.call.wire.Wire` on a `Peer`. Make it on the event loop."""

    def __init__(
        self,
        ice: IceOptions,
        cache: PacketCache,
        conversation_id: str,
        *,
        events: bool = False,
        metrics: bool = False,
        states: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._unwanted = tuple(t for t, wanted in ((EventMessage, events), (MetricsMessage, metrics)) if not wanted)
        self._follows_state = states
        self.peer = Peer(
            ice,
            on_packet=self._has_packet,
            on_message=self._has_message,
            on_open=self._has_opened,
            on_channel=self._has_channel,
            on_end=lambda: self._end("disconnected"),
        )
        self._call: CallInputs | None = None
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._closing = False
        # Out
        self._pacer = Pacer(now)
        self._encoder = SpeechEncoder(cache)
        self._early: deque[str] = deque([messages.ready(conversation_id, OPUS_RATE)], maxlen=MAX_MESSAGES)
        self._pacing: asyncio.TimerHandle | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._tail = 0
        self._sent_until = now
        # In
        self._controls = Controls(lambda code, text: self.send(ErrorMessage(code, text)), now)
        self._reception = Reception(self._controls, CHANNEL)

    @property
    def traits(self) -> WireTraits:
        """Positions are reported once the client has begun to: a client need not."""
        return WireTraits(CHANNEL, self._controls.reports_position, self._follows_state)

    async def run(self, call: CallInputs) -> str:
        self._call = call
        try:
            return await asyncio.shield(self._over)
        finally:
            self._call = None
            self._end("disconnected")

    async def close(self) -> None:
        """Close the connection after `run`, whatever ended it. Bounded; never raises."""
        self._end("closed")
        await self.peer.close()

    def end_by_caller(self) -> None:
        """The caller hung up by another way than the connection."""
        self._end("hang_up")

    def end_by_successor(self) -> None:
        """The caller has lost this connection and comes back on another."""
        self._end("disconnected")

    # What the call asks of its wire

    def send_audio(self, frame: bytes) -> None:
        if self._closing:
            return
        if not self._pacer.add_audio(frame):
            AUDIO_DROPPED.labels(channel=CHANNEL).inc(FRAME_S)
        self._pump()

    def clear(self) -> None:
        if self._closing:
            return
        self._pacer.clear(self._loop.time())
        self._send_text(messages.CLEAR)
        self._pump()

    def send(self, message: WireMessage) -> None:
        if self._closing or isinstance(message, self._unwanted):
            return
        if self._pacer.is_full:
            log.warning("the client takes no messages; it counts as gone")
            self._end("disconnected")
            return
        self._pacer.add_text(messages.encode(message), mark=isinstance(message, MarkMessage))
        self._pump()

    async def drain(self, timeout_s: float) -> bool:
        """True once all audio has left and, at the speed of speech and behind the far end's buffer, was played."""
        deadline = self._loop.time() + timeout_s
        while not self._over.done():
            now = self._loop.time()
            unplayed_s = self._pacer.plays_until + FAR_BUFFER_S - now
            if not self._pacer.frames and unplayed_s <= 0:
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
            await self.drain(HANG_UP_S - LINGER_S)
            self._send_text(messages.hang_up(reason))
            await asyncio.wait({self._over}, timeout=LINGER_S)
        self._end("closed")

    # Out

    def _pump(self) -> None:
        """Send what may leave now, and come back when the rest may."""
        now = self._loop.time()
        while (item := self._pacer.take(now)) is not None:
            if isinstance(item, PacedFrame):
                self._speak(item)
            else:
                self._send_text(item.text)
        if self._pacing is not None:
            self._pacing.cancel()
            self._pacing = None
        wait_s = self._pacer.wait_s(now)
        if wait_s is not None:
            self._pacing = self._loop.call_later(wait_s, self._pump)

    def _speak(self, frame: PacedFrame) -> None:
        if frame.first:
            self._encoder.restart()
        self._transmit(self._encoder.encode(frame.pcm), frame.at_s, first=frame.first)
        self._tail = TAIL_FRAMES
        if self._silence is None:
            self._silence = self._loop.call_later(LATE_S + FRAME_S, self._be_silent)

    def _transmit(self, packet: bytes, at_s: float, *, first: bool) -> None:
        # Timestamps never go back, however a loop that was held up wakes its timers.
        at_s = max(at_s, self._sent_until)
        self._sent_until = at_s + FRAME_S
        self.peer.line.send(packet, at_s, first=first)

    def _be_silent(self) -> None:
        """Where nothing more is said, let the far end play the last of it, then only keep the line alive."""
        now = self._loop.time()
        pause_at = self._pacer.plays_until + LATE_S
        if now < pause_at or self._pacer.frames:
            wait_s = max(pause_at - now, FRAME_S)
        else:
            if not self._tail:
                self._encoder.restart()
            # Silence fills the frame that is just over: speech that begins now is not put off by it.
            self._transmit(self._encoder.encode(SILENCE), now - FRAME_S, first=not self._tail)
            self._tail = max(0, self._tail - 1)
            wait_s = FRAME_S if self._tail else KEEP_ALIVE_S
        self._silence = self._loop.call_later(wait_s, self._be_silent)

    def _send_text(self, text: str) -> None:
        if not self.peer.has_channel:
            self._early.append(text)
        elif not self.peer.send_text(text):
            log.warning("the client takes no messages; it counts as gone")
            self._end("disconnected")

    def _has_opened(self) -> None:
        if not self._over.done() and self._silence is None:
            self._be_silent()

    def _has_channel(self) -> None:
        while self._early:
            self._send_text(self._early.popleft())

    # In

    def _has_message(self, text: str) -> None:
        if self._call is None or self._over.done():
            return
        if reason := self._controls.read(text, self._call, self._loop.time()):
            self._end(reason)

    def _has_packet(self, sequence: int, timestamp: int, payload: bytes) -> None:
        if self._call is not None and not self._over.done():
            self._reception.take(sequence, timestamp, payload, self._call)

    def _end(self, reason: str) -> None:
        """End the run, once; later reasons do not count."""
        self._closing = True
        self._reception.stop()
        for timer in (self._pacing, self._silence):
            if timer is not None:
                timer.cancel()
        if not self._over.done():
            self._over.set_result(reason)
