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
from typing import Any, Protocol

from voice_agent.call.filler import FILLER, Filler
from voice_agent.call.floor import Event, State
from voice_agent.call.inbox import Inbox
from voice_agent.call.ledger import PlayoutLedger
from voice_agent.call.mouth import Mouth
from voice_agent.call.timeline import Times
from voice_agent.call.turn import Entry, Turn
from voice_agent.call.wire import MetricsMessage, TranscriptMessage, Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled, race
from voice_agent.dialogue.reply import Conversation, HeardReply, ReplyItem, Say, TurnResult, TurnStatus, UserInput
from voice_agent.telemetry.logging import bind
from voice_agent.telemetry.metrics import FILLERS, FIRST_AUDIO

log = logging.getLogger(__name__)

BACKSTOP_S = 30.0
"""How long a cancelled turn may go on finishing (a tool that must not be cut) before it is abandoned."""
INTERNAL_ERROR = "utter_internal_error"
DRAIN_MARGIN_S = 0.5
"""How much later than its own limit a wire may tell that it did not drain."""
LINE_MESSAGE = 1_000_000
"""Number of a message that the call says by itself: after whatever the dialogue said before it failed."""


class FloorHolder(Protocol):
    """Raises events on the floor and carries out its commands."""

    @property
    def state(self) -> State: ...

    def on(self, event: Event) -> None: ...

    async def settled(self) -> None:
        """Wait until no decision about the caller's voice is pending."""
        ...


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
    ) -> None:
        self._call_id, self._conversation, self._wire = call_id, conversation, wire
        self._options, self._times, self._on_hang_up = options, times, on_hang_up
        self._mouth: Mouth
        self._floor: FloorHolder
        self._backstop_s = BACKSTOP_S
        self._backstop: CancelToken | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._filler = Filler(options.filler_after_ms, lambda: self._floor.state is State.THINKING, self._say_filler)
        self.inbox = Inbox()
        self.current: Turn | None = None
        self.ended = 0
        self._started = 0

    def attach(self, mouth: Mouth, floor: FloorHolder) -> None:
        """Close the ring: the mouth and the floor know the runner, and the runner them."""
        self._mouth, self._floor = mouth, floor

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
        self._backstop_s = limit_s
        if self._timer is not None:
            self._timer.cancel()
            self._arm()

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
            first=self._started == 1,
        )
        turn.hang_up = entry.hang_up
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
                self._mouth.finish(turn)
                await self._play_out(turn)
            finally:
                self._end(turn)

    async def _think(self, turn: Turn) -> TurnResult | None:
        """Run the dialogue's part of the turn. Never raises for its faults."""
        if turn.entry.user is None:
            self._say_line(turn, turn.entry.line or "")
            return None
        backstop = self._backstop = CancelToken()
        forget = turn.token.on_cancel(self._arm)
        try:
            grace_s = self._options.grace_ms / 1000
            return (await race(self._ask(turn, turn.entry.user), backstop, name="turn", grace_s=grace_s)).value
        except TurnCancelled:
            log.warning("the turn did not end after it was cancelled")
        except Exception:
            log.exception("the dialogue failed")
            self._say_line(turn, INTERNAL_ERROR)
        finally:
            forget()
            self._backstop = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        return None

    async def _ask(self, turn: Turn, user: UserInput) -> TurnResult:
        turn.begun = True
        return await self._conversation.turn(user, turn_id=turn.id, sink=turn, cancel=turn.token)

    def _arm(self) -> None:
        backstop = self._backstop
        if backstop is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._backstop_s, backstop.cancel, CancelReason.TIMEOUT)

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
        while True:
            await turn.over.wait()
            if turn.token.reason is CancelReason.TIMEOUT and turn.hang_up is not None:
                # A goodbye that could not be spoken is no reason to stay.
                self._on_hang_up(turn.hang_up)
            if turn.token.is_cancelled or turn.hang_up is None:
                return
            if self._floor.state in (State.THINKING, State.SPEAKING):
                self._floor.on(Event.GOODBYE)
                turn.draining = True
                if not await self._drain(turn):
                    return
                turn.draining = False
            # A voice that came meanwhile is decided first; from here on nothing rolls the hang-up back.
            if self._floor.state is State.LEAVING:
                # Words that were kept for after the goodbye keep the call: nobody is cut off in mid-request.
                # What the service itself ends, at the longest duration of a call, stays ended.
                may_stay = self._options.interruptible_goodbye and turn.entry.hang_up is None
                if not (may_stay and self.inbox.awaits_answer):
                    self._stop_and_commit(turn)
                    self._on_hang_up(turn.hang_up)
                return
            await self._floor.settled()

    async def _drain(self, turn: Turn) -> bool:
        """Wait, not for ever, until the far end has played everything; False if the turn was cancelled meanwhile."""
        limit_s = self._options.drain_timeout_s
        try:
            async with asyncio.timeout(limit_s + DRAIN_MARGIN_S):
                await race(self._wire.drain(limit_s), turn.token, name="drain", grace_s=DRAIN_MARGIN_S)
        except TurnCancelled:
            return False
        except TimeoutError:
            log.warning("the wire did not drain within %.1f s", limit_s)
        except Exception:
            log.exception("the wire failed to drain")
        return True

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
        if text.strip():
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
        timeline.teardown = self._times.since()
        # Whoever still holds the sink (abandoned work) must not hold the call.
        turn.take = _drop
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
