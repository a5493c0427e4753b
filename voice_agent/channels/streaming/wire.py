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
from collections.abc import Sequence
from dataclasses import replace

from voice_agent.call.wire import CallInputs, ErrorMessage, MarkMessage, WireMessage, WireTraits
from voice_agent.channels.controls import Controls
from voice_agent.channels.intake import Intake
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key, Mute, Played, TypedText
from voice_agent.channels.outbox import MAX_AUDIO_S
from voice_agent.channels.streaming.connection import NORMAL_CLOSURE, Receive, Send
from voice_agent.channels.streaming.marks import DrainMarks
from voice_agent.channels.streaming.serializer import (
    Answer,
    FarEndCloses,
    Farewell,
    FlowControl,
    Inbound,
    MarkReached,
    Media,
    Message,
    Serializer,
    Stamps,
)
from voice_agent.channels.streaming.speech import FRAME_S, OutgoingSpeech
from voice_agent.channels.streaming.writer import Writer
from voice_agent.telemetry.metrics import AUDIO_DROPPED

log = logging.getLogger(__name__)

CLOSE_S = 2.0
"""Limit on saying goodbye to a socket."""
READS = (200, 400.0)
"""Messages of any kind read at once, and per second after that; the sender then waits. Audio needs 50 to 100."""


class StreamWire:
    """Implements `voice_agent.call.wire.Wire` on an accepted ASGI WebSocket."""

    def __init__(
        self,
        receive: Receive,
        send: Send,
        serializer: Serializer,
        early: Sequence[Inbound] = (),
        max_audio_s: float = MAX_AUDIO_S,
    ) -> None:
        """Must be made on the running loop.

        Args:
            early: What has been read already, and belongs to the call.
            max_audio_s: Agent audio kept for a far end that does not read.
        """
        self._receive, self._send_asgi, self._serializer, self._early = receive, send, serializer, early
        self._channel = serializer.traits.channel
        self._loop = asyncio.get_running_loop()
        now, rate = self._loop.time(), serializer.rate
        self._intake = Intake(rate, now)
        self._speech = OutgoingSpeech(rate, serializer.frame_ms, self._queue_audio, now)
        self._controls = Controls(lambda code, text: self.send(ErrorMessage(code, text)), now)
        self._dropped_s = 0.0
        self._writer = Writer(send, serializer.stamp if isinstance(serializer, Stamps) else None, max_audio_s)
        self._outbox = self._writer.outbox
        for message in serializer.opening():
            self._outbox.add(message)
        self._backlog = asyncio.Event()
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._leaving: str = "closed"
        self._closing = self._hung_up = self._far_end_is_full = False
        self._drains = DrainMarks()
        self._limit: asyncio.TimerHandle | None = None

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
                if self._limit is not None:
                    self._limit.cancel()
                for task in tasks:
                    task.cancel()

    async def close(self) -> None:
        """Close the socket after `run`, whatever ended it. Bounded; never raises for a socket that is gone.

        A client that floods gets no closing handshake: the server would go on reading until it answers.
        """
        self._end("closed")
        if self._writer.close_sent or self._controls.floods:
            return
        self._writer.close_sent = True
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._send_asgi({"type": "websocket.close", "code": NORMAL_CLOSURE})
        except (OSError, RuntimeError, TimeoutError):
            log.debug("the socket was gone before its close")

    async def _read(self, call: CallInputs) -> None:
        receive, now = self._receive, self._loop.time
        self._act_on(self._early, call)
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
        self._act_on(items, call)

    def _act_on(self, items: Sequence[Inbound], call: CallInputs) -> None:
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
        await asyncio.sleep(FRAME_S)

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
                if not self._drains.reached(name):
                    call.mark_reached(name)
            case FlowControl(full):
                self._far_end_is_full = full
            case Answer(message):
                if not self._outbox.is_full:
                    self._outbox.add(message)
                    self._writer.wake()
            case Farewell(message, reason):
                self._part(message, reason)
            case TypedText() | Key() | Played() | Mute() | CallerHangUp():
                if why := self._controls.act(item, call):
                    self._end(why)

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
        try:
            await self._writer.run()
            self._end(self._leaving)
        except (OSError, RuntimeError):
            # The far end went while we sent.
            self._end("disconnected")

    # What the call asks of its wire

    def send_audio(self, frame: bytes) -> None:
        if self._closing or self._far_end_is_full:
            return
        self._speech.push(frame, self._loop.time())

    def clear(self) -> None:
        if self._closing:
            return
        self._speech.clear(self._loop.time())
        self._outbox.clear(self._serializer.clear())
        self._far_end_is_full = False
        self._writer.wake()

    def send(self, message: WireMessage) -> None:
        if self._closing or (written := self._serializer.message(message)) is None:
            return
        if self._outbox.is_full:
            log.warning("the client takes no messages; it counts as gone")
            self._end("disconnected")
            return
        self._outbox.add(written, mark=isinstance(message, MarkMessage))
        self._writer.wake()

    async def drain(self, timeout_s: float) -> bool:
        """True once all audio has left and, at the speed of speech, was played; and the far end says so, if it can."""
        self._speech.finish()
        deadline = self._loop.time() + timeout_s
        while not self._over.done():
            now = self._loop.time()
            unplayed_s = self._speech.plays_until - now
            if not self._outbox.frames and unplayed_s <= 0:
                told = self._serializer.traits.echoes_marks
                return not told or await self._drains.ask(self.send, self._over, deadline - now)
            if now >= deadline:
                return False
            await asyncio.wait({self._over}, timeout=min(max(unplayed_s, FRAME_S), deadline - now))
        return False

    async def hang_up(self, reason: str) -> None:
        if not self._closing:
            self._closing = self._hung_up = True
            for message in self._serializer.hang_up(reason):
                self._outbox.add(message)
            if not isinstance(self._serializer, FarEndCloses):
                self._outbox.add_close(NORMAL_CLOSURE)
            self._writer.wake()
        await asyncio.wait({self._over}, timeout=CLOSE_S)
        self._end("closed")

    # Inner workings

    def _part(self, message: Message, reason: str) -> None:
        """The far end leaves: send it one last message, and close."""
        self._leaving, self._closing = reason, True
        self._outbox.clear(())
        self._outbox.add(message)
        self._outbox.add_close(NORMAL_CLOSURE)
        self._writer.wake()
        self._limit = self._loop.call_later(CLOSE_S, self._end, reason)

    def _queue_audio(self, pcm: bytes) -> None:
        if not self._writer.add_audio(self._serializer.audio(pcm)):
            self._end("disconnected")

    def _end(self, reason: str) -> None:
        """End the run, once; later reasons do not count."""
        self._closing = True
        if not self._over.done():
            self._over.set_result("closed" if self._hung_up else reason)
