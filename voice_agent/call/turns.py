"""Runs the turns of a call, one after the other, and ends them in the one right order.

::

    admitted ─▶ TURN_STARTED ─▶ dialogue ─▶ last word ─▶ played to the end ─▶ committed ─▶ TURN_ENDED
                     │                                         │
                     └── cancel: sink stopped ▸ heard text committed ▸ token cancelled ▸ dialogue awaited
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from voice_agent.call.backstop import Backstop
from voice_agent.call.filler import FILLER, Filler
from voice_agent.call.floor import Event, State
from voice_agent.call.inbox import Inbox
from voice_agent.call.keypad import Keypad
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.mouth import Mouth
from voice_agent.call.parting import FloorHolder, Parting
from voice_agent.call.timeline import Times
from voice_agent.call.transfer import HoldAudio, Transfers, ringing_tone
from voice_agent.call.turn import Entry, Turn
from voice_agent.call.wire import MetricsMessage, TranscriptMessage, Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason, TurnCancelled
from voice_agent.dialogue.reply import Conversation, HeardReply, ReplyItem, Say, TurnResult, TurnStatus, UserInput
from voice_agent.telemetry.logging import bind
from voice_agent.telemetry.metrics import FILLERS, FIRST_AUDIO

log = logging.getLogger(__name__)

INTERNAL_ERROR = "utter_internal_error"
LINE_MESSAGE = 1_000_000
"""Number of a message that the call says by itself: after whatever the dialogue said before it failed."""


class TurnRunner:
    """Owns the current turn.

    Attributes:
        current: The turn that runs or is still being played.
        ended: Turns that ended so far.
    """

    def __init__(
        self,
        call_id: str,
        conversation: Conversation,
        wire: Wire,
        options: TurnTaking,
        times: Times,
        on_hang_up: Callable[[str], None],
        *,
        on_transferred: Callable[[str], None] = lambda destination: None,
        hold_audio: HoldAudio = ringing_tone,
    ) -> None:
        self._call_id, self._conversation, self._wire = call_id, conversation, wire
        self._options, self._times = options, times
        self._on_hang_up, self._on_transferred = on_hang_up, on_transferred
        self._mouth: Mouth
        self._floor: FloorHolder
        self._backstop = Backstop()
        self._idle = asyncio.Event()
        self._idle.set()
        self._filler = Filler(options.filler_after_ms, lambda: self._floor.state is State.THINKING, self._say_filler)
        self.inbox = Inbox()
        self._parting = Parting(wire, options, self.inbox)
        self._transfers = Transfers(wire, self._parting, hold_audio, options.grace_ms / 1000)
        self._keypad = Keypad(wire, self._parting, options.grace_ms / 1000)
        self.current: Turn | None = None
        self.ended = 0
        self._started = 0
        self._has_spoken = False

    def attach(self, mouth: Mouth, floor: FloorHolder) -> None:
        """Close the ring: the mouth and the floor know the runner, and the runner them."""
        self._mouth, self._floor = mouth, floor
        self._parting.attach(floor)
        self._transfers.attach(mouth, floor)
        self._keypad.attach(mouth, floor)

    @property
    def can_transfer(self) -> bool:
        """Whether the wire can put the caller through to somebody else."""
        return self._transfers.possible

    @property
    def can_send_digits(self) -> bool:
        """Whether there is a telephone line to press keys on."""
        return self._keypad.possible

    async def run(self) -> None:
        """Take entries and run their turns until cancelled."""
        while True:
            entry = await self.inbox.next()
            if not entry.when_quiet or self._floor.state is State.LISTENING:
                await self._run_turn(entry)

    def cancel(self, reason: CancelReason) -> None:
        """End the current turn: stop the sink, commit what was heard, then cancel. Safe in every state."""
        turn = self.current
        if turn is None or turn.token.is_cancelled:
            return
        turn.timeline.cancel = self._times.since()
        self._stop_and_commit(turn)
        turn.token.cancel(reason)
        turn.over.set()

    def hurry(self, limit_s: float) -> None:
        """The call ends: a turn that is still finishing has this long."""
        self._backstop.hurry(limit_s)

    def quiet(self) -> None:
        """The caller has stopped speaking, and the turn goes on."""
        self._filler.quiet()

    async def idle(self) -> None:
        """Wait until no turn runs."""
        await self._idle.wait()

    async def _run_turn(self, entry: Entry) -> None:
        self._started += 1
        turn = Turn(
            f"{self._call_id}-{self._started}",
            entry,
            PlayoutLedger(reports_position=self._wire.traits.reports_position),
            self._mouth.take,
            self._times.now(),
            first=not self._has_spoken,
        )
        turn.hang_up = entry.hang_up
        turn.put_through = self._transfers.run if self._transfers.possible else None
        turn.press = self._keypad.run if self._keypad.possible else None
        self.current = turn
        self._idle.clear()
        with bind(turn=turn.id):
            self._mouth.begin(turn)
            self._floor.on(Event.TURN_STARTED)
            self._filler.begin(turn)
            try:
                result = await self._think(turn)
                if result is not None:
                    turn.status = result.status
                    self._take_marks(turn, result)
                if turn.transferred is not None:
                    self._stop_and_commit(turn)
                    self._on_transferred(turn.transferred)
                else:
                    self._mouth.finish(turn)
                    await self._play_out(turn)
            finally:
                self._end(turn)

    async def _think(self, turn: Turn) -> TurnResult | None:
        """Run the dialogue's part of the turn. Never raises for its faults."""
        if turn.entry.user is None:
            self._say_line(turn, turn.entry.line or "")
            return None
        try:
            work = self._ask(turn, replace(turn.entry.user, early=turn.entry.early))
            return await self._backstop.run(work, turn.token, self._options.grace_ms / 1000)
        except TurnCancelled:
            log.warning("the turn did not end after it was cancelled")
        except Exception:
            log.exception("the dialogue failed")
            self._say_line(turn, INTERNAL_ERROR)
        return None

    async def _ask(self, turn: Turn, user: UserInput) -> TurnResult:
        turn.begun = True
        return await self._conversation.turn(user, turn_id=turn.id, sink=turn, cancel=turn.token)

    def _say_line(self, turn: Turn, name: str) -> None:
        text = self._wording(name)
        if text:
            turn.emit(Say(LINE_MESSAGE, text, end=True, source="response", response=name))

    def _wording(self, name: str, nth: int = 0) -> str:
        try:
            return self._conversation.line(name, nth)
        except Exception:
            log.exception("the line %r has no wording", name)
            return ""

    def _say_filler(self, turn: Turn, nth: int) -> None:
        text = self._wording(FILLER, nth)
        if text:
            self._note("filler", text=text)
            FILLERS.inc()
            self._mouth.aside(turn, text)

    async def _play_out(self, turn: Turn) -> None:
        """Wait until the reply was heard; then hang up if that was its end and the caller does not object."""
        await turn.over.wait()
        if turn.hang_up is None:
            return
        passed = await self._parting.passed(turn)
        # A goodbye that could not be spoken is no reason to stay.
        unspoken = turn.token.reason is CancelReason.TIMEOUT and self._floor.state is not State.CLOSED
        if passed or unspoken:
            self._stop_and_commit(turn)
            self._record_end(turn)
            self._on_hang_up(turn.hang_up)

    @staticmethod
    def _record_end(turn: Turn) -> None:
        try:
            if turn.ended is not None:
                turn.ended()
        except Exception:
            log.exception("the end of the call could not be recorded")

    def _stop_and_commit(self, turn: Turn) -> None:
        now = self._times.now()
        heard = turn.ledger.heard(now)
        if turn.timeline.first_audio is not None:
            turn.timeline.last_audio = self._times.since(min(now, turn.ledger.play_until))
        self._mouth.stop(turn)
        self._commit(turn, heard)

    def _commit(self, turn: Turn, heard: HeardReply) -> None:
        if turn.ledger.committed or (turn.entry.user is not None and not turn.begun):
            # Cancelled in the very tick in which it began: the caller's words come first.
            return
        turn.ledger.commit(self._times.now())
        turn.entry.heard = bool(heard.heard.strip())
        if turn.entry.user is None:
            self._note("line", turn_id=turn.id, name=turn.entry.line, heard=heard.heard, unheard=heard.unheard)
        else:
            try:
                self._conversation.commit_reply(turn.id, heard)
            except Exception:
                log.exception("the reply could not be recorded")
        text = turn.ledger.text
        # A far end counts what it played of a reply: it must learn when one is over of which only a filler sounded.
        if text.strip() or turn.ledger.released:
            self._wire.send(TranscriptMessage("agent", text, final=True, heard=heard.heard))

    def _note(self, kind: str, **data: Any) -> None:
        try:
            self._conversation.note(kind, **data)
        except Exception:
            log.exception("a note could not be recorded")

    def _take_marks(self, turn: Turn, result: TurnResult) -> None:
        for name in ("model_request", "first_token"):
            instant = result.marks.get(name)
            if instant is not None:
                setattr(turn.timeline, name, self._times.since(instant))

    def _end(self, turn: Turn) -> None:
        self._filler.end()
        self._stop_and_commit(turn)
        if turn.token.reason is CancelReason.SUPERSEDED and turn.status is not TurnStatus.CANCELLED:
            # The dialogue was done before it could learn that these words come again with the next turn.
            self._note("turn_superseded", turn_id=turn.id)
        timeline = turn.timeline
        self._has_spoken = self._has_spoken or timeline.first_audio is not None
        timeline.teardown = self._times.since()
        # Whoever still holds the sink (abandoned work) must not hold the call.
        turn.take, turn.put_through, turn.press, turn.ended = _drop, None, None, None
        self.current = None
        self.ended += 1
        self._idle.set()
        if timeline.speech_end is not None and timeline.first_audio is not None:
            FIRST_AUDIO.observe(max(0.0, timeline.first_audio - timeline.speech_end))
        self._note("turn_timeline", turn_id=turn.id, call_id=self._call_id, **timeline.as_record())
        self._wire.send(MetricsMessage(turn.id, timeline.as_mapping()))
        self._floor.on(Event.TURN_ENDED)


def _drop(turn: Turn, item: ReplyItem) -> None:
    """The turn is over."""
