"""One call streamed over a WebSocket, whatever messages its provider speaks (`serializer.Serializer`).

Works on the two callables of an ASGI connection: a frame costs one dictionary and one await between the network and
the call. Reader and writer are the only tasks that touch them.

What leaves, in order; control overtakes audio::

    send_audio ─▶ ┌─────────────────────────────┐
    send ───────▶ │ outbox: frames and messages │ ─▶ writer ─▶ socket      bounded; the oldest frame goes
    clear ══════▶ └─ drops frames, goes first ──┘
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from voice_agent.audio.frames import FRAME_MS, SAMPLE_BYTES, SAMPLE_RATE, Reframer
from voice_agent.audio.resample import Resampler
from voice_agent.call.wire import CallInputs, ErrorMessage, MarkMessage, WireMessage, WireTraits
from voice_agent.channels.controls import Controls
from voice_agent.channels.intake import Intake
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key, Mute, Played, TypedText
from voice_agent.channels.outbox import Outbox
from voice_agent.channels.streaming.serializer import Inbound, MarkReached, Media, Message, Serializer
from voice_agent.telemetry.metrics import AUDIO_DROPPED

log = logging.getLogger(__name__)

STUCK_S = 10.0
"""A client that takes nothing for this long while its outbox overflows is gone."""
CLOSE_S = 2.0
"""Limit on saying goodbye to a socket."""
READS = (200, 400.0)
"""Messages of any kind read at once, and per second after that; the sender then waits. Audio needs 50 to 100."""
NORMAL_CLOSURE, POLICY_VIOLATION = 1000, 1008

_FRAME_S = FRAME_MS / 1000

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class StreamWire:
    """Implements `voice_agent.call.wire.Wire` on an accepted ASGI WebSocket."""

    def __init__(self, receive: Receive, send: Send, serializer: Serializer) -> None:
        """Must be made on the running loop."""
        self._receive, self._send_asgi, self._serializer = receive, send, serializer
        self._channel = serializer.traits.channel
        self._loop = asyncio.get_running_loop()
        now, rate = self._loop.time(), serializer.rate
        self._intake = Intake(rate, now)
        self._outgoing = Resampler(SAMPLE_RATE, rate)
        exact = serializer.frame_ms
        self._frames = None if exact is None else Reframer(rate * exact // 1000 * SAMPLE_BYTES)
        self._controls = Controls(lambda code, text: self.send(ErrorMessage(code, text)), now)
        self._dropped_s = 0.0
        self._outbox = Outbox()
        for message in serializer.opening():
            self._outbox.add(message)
        self._plays_until = now
        self._blocked_since: float | None = None
        self._writer_sleeps: asyncio.Future[None] | None = None
        self._backlog = asyncio.Event()
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._closing = False
        self._close_sent = False

    @property
    def traits(self) -> WireTraits:
        """Positions are reported by marks that come back, or once a client has begun to: it need not."""
        traits = self._serializer.traits
        return replace(traits, reports_position=traits.echoes_marks or self._controls.reports_position)

    # The two directions

    async def run(self, call: CallInputs) -> str:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._read(call), name=f"{self._channel}.read"),
                group.create_task(self._write(), name=f"{self._channel}.write"),
                group.create_task(self._catch_up(call), name=f"{self._channel}.catch-up"),
            ]
            try:
                return await asyncio.shield(self._over)
            finally:
                self._end("disconnected")
                for task in tasks:
                    task.cancel()

    async def close(self) -> None:
        """Close the socket after `run`, whatever ended it. Bounded; never raises for a socket that is gone.

        A client that floods gets no closing handshake: the server would go on reading until it answers.
        """
        self._end("closed")
        if self._close_sent or self._controls.floods:
            return
        self._close_sent = True
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._send_asgi({"type": "websocket.close", "code": NORMAL_CLOSURE})
        except (OSError, RuntimeError, TimeoutError):
            log.debug("the socket was gone before its close")

    async def _read(self, call: CallInputs) -> None:
        receive, now = self._receive, self._loop.time
        read, since = 0, now()
        while True:
            message = await receive()
            read += 1
            if read >= READS[0]:
                # Not reading pushes back on the sender; and messages that wait already never give the loop away.
                await asyncio.sleep(max(0.0, since + read / READS[1] - now()))
                read, since = 0, now()
            if message["type"] != "websocket.receive":
                self._end("disconnected")
                return
            data = message.get("bytes")
            self._take_in(message.get("text") or "" if data is None else data, call)
            if self._intake.waiting:
                await self._hold_back()

    def _take_in(self, message: Message, call: CallInputs) -> None:
        try:
            items = self._serializer.read(message)
        except BadMessage as error:
            if self._may_control():
                self._controls.complain(error.code, error.message, self._loop.time())
            return
        if not items:
            self._may_control()
        for item in items:
            if isinstance(item, Media):
                if pcm := self._intake.push(item.pcm, self._loop.time()):
                    call.hear(pcm)
            elif self._may_control():
                self._control(item, call)

    async def _hold_back(self) -> None:
        """Audio came faster than real time. Once some was dropped, say so, and read this client more slowly."""
        self._backlog.set()
        dropped_s = self._intake.dropped_s - self._dropped_s
        if not dropped_s:
            return
        AUDIO_DROPPED.labels(channel=self._channel).inc(dropped_s)
        if not self._dropped_s:
            text = "Audio must come in real time; some of it was dropped."
            self._controls.complain("audio_too_fast", text, self._loop.time())
        self._dropped_s += dropped_s
        await asyncio.sleep(_FRAME_S)

    def _may_control(self) -> bool:
        """Whether one more message that is no audio is acted on."""
        if self._controls.admit(self._loop.time()):
            return True
        if self._controls.floods:
            self._end("disconnected")
        return False

    def _control(self, item: Inbound, call: CallInputs) -> None:
        match item:
            case MarkReached(name):
                call.mark_reached(name)
            case TypedText() | Key() | Played() | Mute() | CallerHangUp():
                if reason := self._controls.act(item, call):
                    self._end(reason)

    async def _catch_up(self, call: CallInputs) -> None:
        """Hand over audio that came faster than real time, when its time has come."""
        while True:
            await self._backlog.wait()
            self._backlog.clear()
            while (wait_s := self._intake.wait_s(self._loop.time())) is not None:
                await asyncio.sleep(wait_s)
                if pcm := self._intake.release(self._loop.time()):
                    call.hear(pcm)

    async def _write(self) -> None:
        outbox, send = self._outbox, self._send_asgi
        try:
            while True:
                while outbox:
                    item = outbox.take()
                    if item["type"] == "websocket.close":
                        self._close_sent = True
                    await send(item)
                    self._blocked_since = None
                    if self._close_sent:
                        self._end("closed")
                        return
                self._writer_sleeps = self._loop.create_future()
                await self._writer_sleeps
        except (OSError, RuntimeError):
            # The far end went while we sent: ASGI servers raise OSError, some of them RuntimeError.
            self._end("disconnected")

    # What the call asks of its wire

    def send_audio(self, frame: bytes) -> None:
        if self._closing:
            return
        now = self._loop.time()
        self._plays_until = (self._plays_until if self._plays_until > now else now) + _FRAME_S
        self._queue_audio(self._outgoing.push(frame), now)

    def clear(self) -> None:
        if self._closing:
            return
        self._outgoing.flush()
        if self._frames is not None:
            self._frames.reset()
        self._outbox.clear(self._serializer.clear())
        self._plays_until = self._loop.time()
        self._wake()

    def send(self, message: WireMessage) -> None:
        if self._closing or (written := self._serializer.message(message)) is None:
            return
        if self._outbox.is_full:
            log.warning("the client takes no messages; it counts as gone")
            self._end("disconnected")
            return
        self._outbox.add(written, mark=isinstance(message, MarkMessage))
        self._wake()

    async def drain(self, timeout_s: float) -> bool:
        """True once all audio has left and, at the speed of speech, has been played."""
        self._queue_audio(self._outgoing.flush(), self._loop.time(), last=True)
        deadline = self._loop.time() + timeout_s
        while not self._over.done():
            now = self._loop.time()
            unplayed_s = self._plays_until - now
            if not self._outbox.frames and unplayed_s <= 0:
                return True
            if now >= deadline:
                return False
            await asyncio.wait({self._over}, timeout=min(max(unplayed_s, _FRAME_S), deadline - now))
        return False

    async def hang_up(self, reason: str) -> None:
        if not self._closing:
            self._closing = True
            for message in self._serializer.hang_up(reason):
                self._outbox.add(message)
            self._outbox.add_close(NORMAL_CLOSURE)
            self._wake()
        await asyncio.wait({self._over}, timeout=CLOSE_S)
        self._end("closed")

    # Inner workings

    def _queue_audio(self, pcm: bytes, now: float, *, last: bool = False) -> None:
        """Queue PCM at the wire's rate, cut to the frames that the far end wants."""
        if self._frames is None:
            pieces = [pcm]
        else:
            pieces = self._frames.push(pcm)
            if last:
                pieces.append(self._frames.flush())
        for piece in filter(None, pieces):
            if not self._outbox.add_audio(self._serializer.audio(piece)):
                self._overflows(now)
            self._wake()

    def _overflows(self, now: float) -> None:
        """The client reads too slowly, or no more: the writer resets the time with each item it gets rid of."""
        if self._blocked_since is None:
            self._blocked_since = now
        elif now - self._blocked_since > STUCK_S:
            log.warning("the client took no audio for %.0f s; it counts as gone", STUCK_S)
            self._end("disconnected")

    def _wake(self) -> None:
        if self._writer_sleeps is not None and not self._writer_sleeps.done():
            self._writer_sleeps.set_result(None)

    def _end(self, reason: str) -> None:
        """End the run, once; later reasons do not count."""
        self._closing = True
        if not self._over.done():
            self._over.set_result(reason)
