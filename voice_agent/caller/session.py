"""One call, placed and carried: a strict 20 ms clock out, a reader in, and a clean goodbye whatever happens.

The clock counts frames from the moment the connection is open; ``now`` is 0.02 s times that count for what is
sent and played, and the event loop's time since then for what arrives. A late frame is made up for at once, as
a sound card would, so the caller's audio is continuous and never drifts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from voice_agent.caller.audio import FRAME_S, is_silent
from voice_agent.caller.conversation import Conversation, Ending, Moment, Patience, Phase, Turn
from voice_agent.caller.lines import SpokenLine
from voice_agent.caller.microphone import Microphone
from voice_agent.caller.playout import PlayoutBuffer
from voice_agent.caller.recording import NoRecording
from voice_agent.caller.wire import (
    AgentAudio,
    AgentHangUp,
    CallerWire,
    Clear,
    ConnectionFailed,
    Fault,
    Ready,
    WireItem,
)

MAX_CALL_S = 1800.0
"""Longest call that is placed."""

_TURNED_AWAY_REMEDY = "If the service is full, call again later; otherwise mend what it names."

MAX_FAULTS = 50
"""Faults kept per call; a wire that sends nothing but garbage does not fill the memory."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The connection is open."""

    seconds: float
    """How long opening it took."""


@dataclass(frozen=True, slots=True)
class TurnMoment:
    """Something happened in a turn."""

    moment: Moment
    turn: Turn


@dataclass(frozen=True, slots=True)
class Closed:
    """The call is over."""

    reason: str


Happening = Opened | TurnMoment | Closed | WireItem
Observer = Callable[[float, Happening], None]
"""Told of all that happens but audio, with the caller's clock in seconds. Must return within a millisecond or so."""


class FrameSink(Protocol):
    """Takes both sides of the call, frame by frame."""

    def add(self, caller: bytes, agent: bytes) -> None: ...


@dataclass(slots=True)
class CallOutcome:
    """What came of a call.

    Attributes:
        left_because: Why the agent left, where it did.
        conversation_id: The conversation's id as the agent gave it.
        faults: Errors the agent reported or made, up to `MAX_FAULTS`.
    """

    conversation: Conversation
    seconds: float = 0.0
    opening_s: float = 0.0
    left_because: str = ""
    conversation_id: str | None = None
    faults: list[Fault] = field(default_factory=list)


class Session:
    """Places one call over a wire. Use once."""

    def __init__(
        self,
        wire: CallerWire,
        lines: Sequence[SpokenLine],
        rate: int,
        *,
        patience: Patience | None = None,
        recording: FrameSink | None = None,
    ) -> None:
        self._wire, self._rate = wire, rate
        self._observe: Observer = lambda at, happening: None
        self._recording = recording or NoRecording()
        self._playout = PlayoutBuffer(rate)
        self._microphone = Microphone(rate)
        self._conversation = Conversation(lines, patience, self._note_moment)
        self._started = 0.0
        self._connected, self._ready = True, False
        self.outcome = CallOutcome(self._conversation)
        """What came of it so far; whole when `run` has returned, and still true when it was cancelled."""

    def observe(self, observer: Observer) -> None:
        """Tell ``observer`` of all that happens from now on. Replaces the one before."""
        self._observe = observer

    async def run(self) -> CallOutcome:
        """Place the call and see it through. Cancelling hangs up first.

        Raises:
            ConnectionFailed: The call could not be placed, or was not taken.
        """
        loop = asyncio.get_running_loop()
        dialled = loop.time()
        await self._wire.connect()
        self._started = loop.time()
        self.outcome.opening_s = self._started - dialled
        self._observe(0.0, Opened(self.outcome.opening_s))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(), name="caller-reader")
            try:
                await self._converse()
            finally:
                await self._wire.hang_up()
        if self._connected_in_vain():
            raise ConnectionFailed(f"The call was not taken: {self.outcome.faults[-1].message}", _TURNED_AWAY_REMEDY)
        self._observe(self._now(), Closed(self.outcome.left_because or "the caller hung up"))
        return self.outcome

    def _connected_in_vain(self) -> bool:
        """Turned away after the connection was open: an error and the end, before the agent was ready or heard."""
        outcome = self.outcome
        left = outcome.conversation.ending is Ending.AGENT_LEFT
        return left and bool(outcome.faults) and not self._ready and not outcome.conversation.speech.stretches

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._started

    async def _converse(self) -> None:
        loop, frames, talk = asyncio.get_running_loop(), 0, self._conversation
        while talk.phase is not Phase.OVER and frames * FRAME_S < MAX_CALL_S:
            now = frames * FRAME_S
            heard = self._playout.play()
            line = talk.advance(now, heard, self._playout.audible_pending)
            if line is not None:
                self._microphone.speak(line.pcm)
            said = self._microphone.frame()
            self._recording.add(said, heard.pcm)
            frames += 1
            self.outcome.seconds = frames * FRAME_S
            if self._connected:
                self._connected = await self._wire.send_audio(said)
            elif not self._playout.queued_s:
                self.outcome.left_because = self.outcome.left_because or "it takes no more audio"
                talk.agent_left()
            await asyncio.sleep(max(0.0, self._started + frames * FRAME_S - loop.time()))
        talk.give_up(Ending.TOO_LONG)

    async def _read(self) -> None:
        async for item in self._wire.receive():
            now = self._now()
            if isinstance(item, AgentAudio):
                self._conversation.speech.arrive(now, not is_silent(item.pcm))
                self._playout.push(item.pcm, now)
                continue
            self._take(item, now)
        self._connected = False
        if self._conversation.phase is not Phase.OVER and not self.outcome.left_because:
            self.outcome.left_because = self._wire.closed_because

    def _take(self, item: WireItem, now: float) -> None:
        if isinstance(item, Clear):
            self._playout.clear()
            self._conversation.clear(now)
        elif isinstance(item, Ready):
            self._ready = True
            self.outcome.conversation_id = item.conversation
            if item.rate is not None and item.rate != self._rate:
                self.outcome.left_because = f"it speaks at {item.rate} Hz, {self._rate} Hz were asked for"
                self._conversation.give_up(Ending.WRONG_RATE)
        elif isinstance(item, AgentHangUp):
            if self._conversation.phase is not Phase.OVER:
                self.outcome.left_because = item.reason
        elif isinstance(item, Fault):
            if len(self.outcome.faults) >= MAX_FAULTS:
                return
            self.outcome.faults.append(item)
        self._observe(now, item)

    def _note_moment(self, moment: Moment, turn: Turn, at: float) -> None:
        self._observe(at, TurnMoment(moment, turn))
