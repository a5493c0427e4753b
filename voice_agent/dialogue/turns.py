"""The turns of one conversation: which of them an input makes, and the record of each from beginning to end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.events import Clock
from voice_agent.dialogue.hook_runner import HookFailed
from voice_agent.dialogue.hooks import IncomingMessagePayload, Point, TurnFinishedPayload, TurnStartedPayload
from voice_agent.dialogue.loop import RuntimeLoop
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.places import places
from voice_agent.dialogue.recalling import begin_recall
from voice_agent.dialogue.reply import SESSION_START as START_INTENT
from voice_agent.dialogue.reply import SILENCE as SILENCE_INTENT
from voice_agent.dialogue.reply import InputKind, TurnResult, TurnStatus, UserInput
from voice_agent.dialogue.reply_writer import ReplyWriter
from voice_agent.dialogue.sessions import Sessions
from voice_agent.dialogue.turn import Turn

log = logging.getLogger(__name__)

MAX_UTTERANCE_CHARS = 16_000
"""Longer input is cut: nobody says this much in one breath."""


class Turns:
    """Runs them one at a time; the conversation sees to that.

    Attributes:
        last: The turn that runs or has run last.
    """

    def __init__(self, core: Core, loop: RuntimeLoop, sessions: Sessions, clock: Clock) -> None:
        self._core, self._loop, self._sessions, self._clock = core, loop, sessions, clock
        self.last: Turn | None = None
        self._results: dict[str, Outcome] = {}

    async def take(self, user: UserInput, turn_id: str, reply: ReplyWriter, cancel: CancelToken) -> TurnResult:
        """Run the turn that ``user`` makes, and before it, where a session has to begin first, that one's."""
        now = self._clock()
        nothing = TurnResult(turn_id, TurnStatus.COMPLETED)
        if cancel.is_cancelled:
            if user.kind is not InputKind.INTENT and cancel.reason is not CancelReason.SUPERSEDED:
                # The words were said all the same.
                self._record_user(user, turn_id)
            return TurnResult(turn_id, TurnStatus.CANCELLED)
        if user.kind is InputKind.INTENT:
            return await self._intent(user, turn_id, reply, cancel)
        if not user.text.strip():
            return nothing
        try:
            user = await self._incoming(replace(user, text=user.text[:MAX_UTTERANCE_CHARS]), turn_id, cancel)
        except TurnCancelled:
            return TurnResult(turn_id, TurnStatus.CANCELLED)
        if not user.text.strip():
            return nothing
        start: TurnResult | None = None
        if self._sessions.expired(now) and self._sessions.begin(now):
            start = await self._one(START_INTENT, f"{turn_id}.start", reply, cancel, self._start_session)
        if start is not None and start.status is TurnStatus.CANCELLED:
            # The words were said all the same.
            self._record_user(user, turn_id)
            return TurnResult(turn_id, TurnStatus.CANCELLED)
        return await self._one(user, turn_id, reply, cancel, None)

    async def _incoming(self, user: UserInput, turn_id: str, cancel: CancelToken) -> UserInput:
        """Return the caller's words as the project's hooks leave them, before anything is stored."""
        if not self._core.hooks.watches(Point.INCOMING_MESSAGE):
            return user
        self._core.events.turn_id, self._core.user = turn_id, user
        try:
            given = IncomingMessagePayload(user.text, user.kind.value)
            heard = await self._core.hooks.run(Point.INCOMING_MESSAGE, given, cancel)
        except HookFailed:
            # The hook's fault is logged; a caller is answered all the same.
            return user
        return replace(user, text=heard.text[:MAX_UTTERANCE_CHARS])

    async def _intent(self, user: UserInput, turn_id: str, reply: ReplyWriter, cancel: CancelToken) -> TurnResult:
        now = self._clock()
        nothing = TurnResult(turn_id, TurnStatus.COMPLETED)
        expired = self._sessions.expired(now)
        if user.text == START_INTENT.text:
            if not expired and self._sessions.is_repeated_start(now):
                self._sessions.touch(now, spoke=False)
                return nothing
            if expired:
                self._sessions.begin(now)
            return await self._one(user, turn_id, reply, cancel, self._start_session)
        if user.text == SILENCE_INTENT.text:
            if expired:
                return nothing
            result = await self._one(user, turn_id, reply, cancel, self._check_in)
            self._sessions.restore_question()
            return result
        log.warning("the intent %r means nothing here", user.text[:40])
        return nothing

    def _start_session(self, turn: Turn) -> None:
        self._sessions.start_skill(self._loop.router, turn)

    def _check_in(self, turn: Turn) -> None:
        self._sessions.check_in(self._loop.router, turn)

    async def _one(
        self,
        user: UserInput,
        turn_id: str,
        reply: ReplyWriter,
        cancel: CancelToken,
        prepare: Callable[[Turn], None] | None,
    ) -> TurnResult:
        """Run one turn and record its beginning and end, whatever becomes of it."""
        state, hooks = self._core.state, self._core.hooks
        state.turn += 1
        spoke = user.kind is not InputKind.INTENT
        turn = Turn(turn_id, state.turn, user, reply, cancel, answer_due=spoke, considered=not spoke)
        turn.results_before, self._results, self.last = self._results, {}, turn
        self._core.user, self._core.turn = user, turn
        self._core.events.append("turn_started", {"turn_id": turn_id, "number": turn.number})
        hooks.observe(Point.TURN_STARTED, TurnStartedPayload(turn_id, turn.number))
        self._record_user(user, turn_id)
        self._sessions.touch(self._clock(), spoke=spoke)
        status = TurnStatus.CANCELLED
        turn.recollection = begin_recall(self._core, turn)
        try:
            await self._loop.run(turn, prepare)
            status = TurnStatus.COMPLETED if turn.error is None else TurnStatus.ERROR
        except TurnCancelled as fault:
            if fault.reason is CancelReason.SUPERSEDED:
                self.supersede(turn)
                self._core.events.append("turn_superseded", {"turn_id": turn_id})
        finally:
            for wording in turn.reply.owed:
                self._core.events.append("reply_owed", {"turn_id": turn_id, "text": wording.text})
                state.owed.append(wording)
            finished_as = {"turn_id": turn_id, "status": status.value, "at": places(state)}
            if turn.limit_hit is not None:
                finished_as["limit_hit"] = turn.limit_hit
            self._core.events.append("turn_finished", finished_as)
            finished = TurnFinishedPayload(turn_id, turn.number, status.value, turn.error)
            hooks.observe(Point.TURN_FINISHED, finished)
            if turn.recollection is not None:
                await turn.recollection.aclose()
        return TurnResult(turn_id, status, turn.error, turn.model_calls, turn.marks, turn.limit_hit)

    def supersede(self, turn: Turn) -> None:
        """The next turn goes on with this one: what ran in it has run."""
        self._results = turn.results_before | turn.results

    def _record_user(self, user: UserInput, turn_id: str) -> None:
        self._core.events.turn_id = turn_id
        self._core.events.append("user", {"text": user.text, "kind": user.kind.value})
