"""One live call: its parts, its task group, its end.

::

    wire ─▶ ears ─▶ arbiter ─▶ turns ─▶ dialogue
      ▲              (floor)      │
      └──── playout ◀── mouth ◀───┘

After `Call.run` has returned, no task, timer or reference of the call is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from voice_agent.call.arbiter import Arbiter
from voice_agent.call.bounded import TEARDOWN_GRACE_S, TURN_SHARE, bounded
from voice_agent.call.clock import MediaClock
from voice_agent.call.ears import Ears
from voice_agent.call.ending import Ending
from voice_agent.call.farewell import Farewell
from voice_agent.call.floor import Event, Floor, State
from voice_agent.call.floor_keeper import FloorKeeper
from voice_agent.call.inputs import Inputs
from voice_agent.call.intake import Intake
from voice_agent.call.marks import PositionMarks
from voice_agent.call.mouth import Mouth
from voice_agent.call.outcome import OUTCOMES, SUPERSEDED, TRANSFERRED, CallOutcome
from voice_agent.call.outlet import Outlet
from voice_agent.call.own_voice import OwnVoice
from voice_agent.call.playout import Playout
from voice_agent.call.recorder import Recorder
from voice_agent.call.speculator import Speculator
from voice_agent.call.status import Status
from voice_agent.call.timeline import Times
from voice_agent.call.transfer import HoldAudio, ringing_tone
from voice_agent.call.turn import Entry
from voice_agent.call.turns import TurnRunner
from voice_agent.call.vocabulary import ENGLISH, Vocabulary
from voice_agent.call.watchdog import Watchdog
from voice_agent.call.wire import Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason, CancelToken, race
from voice_agent.dialogue.reply import SESSION_START, Conversation
from voice_agent.speech.protocols import Recognizer, Voice, VoiceDetector
from voice_agent.telemetry.logging import bind

log = logging.getLogger(__name__)


class Call:
    """One call. Construct it on the event loop, then `run` it once.

    Attributes:
        inputs: What the wire feeds.
    """

    def __init__(
        self,
        *,
        call_id: str,
        conversation: Conversation,
        wire: Wire,
        voice: Voice,
        recognizer: Recognizer,
        detector: VoiceDetector,
        options: TurnTaking,
        clock: MediaClock,
        recorder: Recorder | None = None,
        vocabulary: Vocabulary = ENGLISH,
        strict: bool = False,
        hold_audio: HoldAudio = ringing_tone,
    ) -> None:
        """Args: ``strict``: illegal floor transitions raise. ``hold_audio``: what is heard while put through."""
        loop = asyncio.get_running_loop()
        self._id, self._conversation, self._wire, self._options = call_id, conversation, wire, options
        self._recorder = recorder
        self._times = Times(loop.time, loop.time())
        if recorder is not None:
            recorder.begin(self._times.began)
        own_voice = OwnVoice(options, loop.time, vocabulary)
        outlet = Outlet(wire, recorder, own_voice)
        playout = Playout(
            outlet, PositionMarks(wire), clock, loop.time, lead_ms=options.lead_ms, fade_ms=options.fade_ms
        )
        self._runner = TurnRunner(
            call_id,
            conversation,
            wire,
            options,
            self._times,
            self._agent_hangs_up,
            on_transferred=self._transferred,
            hold_audio=hold_audio,
        )
        self._ending = Ending(call_id, conversation, wire, self._runner, options, self._times, recorder)
        self._status = Status(wire, self._runner, self._times)
        self._floor = FloorKeeper(
            Floor(strict=strict), self._runner, conversation, options, self._times, self._status, vocabulary
        )
        self._intake = Intake(self._floor, self._runner, wire, options, self._times)
        self._speculator = Speculator(conversation, self._runner)
        arbiter = Arbiter(
            self._floor, self._intake, self._runner, wire, options, self._times, self._speculator, own_voice, vocabulary
        )
        self._ears = Ears(
            detector,
            recognizer,
            options,
            clock,
            loop.time,
            arbiter,
            expected=lambda: conversation.expected,
            own_voice=own_voice,
            vocabulary=vocabulary,
        )
        self._mouth = Mouth(
            wire,
            voice,
            playout,
            self._times,
            grace_s=options.grace_ms / 1000,
            on_started=self._floor.audio_started,
            on_aside=self._floor.aside_started,
        )
        self._runner.attach(self._mouth, self._floor)
        self._floor.attach(self._ears, self._mouth)
        arbiter.attach(self._ears)
        inputs = self.inputs = Inputs(
            self._ears,
            self._mouth,
            self._floor,
            self._intake,
            self._runner,
            self._times,
            self._ending,
            recorder,
        )
        self._watchdog = Watchdog(
            self._runner, self._floor, self._intake, self._mouth, options, self._times, inputs, end=self._finish
        )
        self._farewell = Farewell(self._runner, self._mouth, self.end)

    @property
    def call_id(self) -> str:
        return self._id

    @property
    def conversation_id(self) -> str:
        return self._conversation.id

    @property
    def channel(self) -> str:
        return self._wire.traits.channel

    @property
    def state(self) -> State:
        """Whose moment it is."""
        return self._floor.state

    @property
    def seconds(self) -> float:
        """Age of the call."""
        return self._times.since()

    @property
    def quiet_s(self) -> float:
        """For how long nothing has come in by the wire, to a quarter of a second."""
        return self._watchdog.quiet_s

    def end(self, reason: CancelReason) -> None:
        """End the call now. Safe in every state, any number of times."""
        self._finish(reason, reason.value)

    def take_leave(self, limit_s: float) -> None:
        """Let the phrase that is being said end, say goodbye, and end the call for a shutdown, within ``limit_s``."""
        self._farewell.ask(limit_s)

    def supersede(self) -> None:
        """The same caller has come by another connection: this one's end is not worth waiting for."""
        self._finish(CancelReason.DISCONNECTED, SUPERSEDED)

    async def run(self) -> CallOutcome:
        """Carry the call to its end. Never raises for anything a caller, engine, tool or wire does."""
        with bind(call=self._id, conversation=self._conversation.id):
            recording = {} if self._recorder is None else {"recording": self._recorder.path.name}
            self._ending.note("call_started", channel=self.channel, **recording)
            try:
                await self._run_parts()
            except Exception:
                log.exception("the call failed")
                self._finish(CancelReason.SHUTDOWN, "internal_error", outcome="failed")
                await bounded(self._wire.hang_up("internal_error"), "hang_up", TEARDOWN_GRACE_S * 2)
            finally:
                self._finish(CancelReason.SHUTDOWN, "shutdown")
                await self._ending.close_conversation()
        return self._ending.result()

    async def _run_parts(self) -> None:
        parts: list[tuple[str, Coroutine[Any, Any, None]]] = [
            ("wire", self._carry_wire()),
            ("turns", self._runner.run()),
            ("mouth", self._mouth.run()),
            ("ears", self._ears.run()),
            ("watchdog", self._watchdog.run()),
            ("farewell", self._farewell.run()),
            ("speculator", self._speculator.run()),
        ]
        if self._recorder is not None:
            parts.append(("recorder", self._recorder.run()))
        if self._status.wanted:
            parts.append(("status", self._status.run()))
            self._status.moved(self._floor.state)
        # Whether somebody comes back to what they were in the middle of, the dialogue knows.
        self._runner.inbox.add(Entry(SESSION_START))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part, name=f"call.{name}") for name, part in parts]
            await self._ending.decided()
            await self._ending.wind_down()
            for task in tasks:
                task.cancel()

    async def _carry_wire(self) -> None:
        """Run the wire. Its end is the end of the call, whatever it is."""
        reason = "disconnected"
        try:
            carried = self._wire.run(self.inputs)
            reason = (await race(carried, CancelToken(), name="wire", grace_s=TEARDOWN_GRACE_S)).value
        except Exception:
            log.exception("the wire failed")
        hung_up = reason == "hang_up"
        self._finish(
            CancelReason.HANG_UP if hung_up else CancelReason.DISCONNECTED,
            "caller_hang_up" if hung_up else "connection_lost",
        )

    def note(self, kind: str, **data: Any) -> None:
        """Record something about the call in the tracker."""
        self._ending.note(kind, **data)

    def _agent_hangs_up(self, reason: str) -> None:
        self._finish(CancelReason.HANG_UP, reason, outcome="completed")

    def _transferred(self, destination: str) -> None:
        self._finish(CancelReason.HANG_UP, destination, outcome=TRANSFERRED)
        self._ending.was_transfer(destination)

    def _finish(self, cancel: CancelReason, reason: str, outcome: str | None = None) -> None:
        """The point of no return, taken once: silence, commit what was heard, cancel the turn."""
        if not self._ending.decide(outcome or OUTCOMES[cancel], reason):
            return
        self._floor.on(Event.ENDED)
        self._runner.inbox.close()
        self._runner.cancel(cancel)
        self._runner.hurry(self._options.close_timeout_s * TURN_SHARE)
        self._ears.close()
        self._speculator.forget()
