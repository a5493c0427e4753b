"""One conversation: strict order of turns, the tracker, the session, and what is saved of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled
from voice_agent.dialogue.commits import Commits
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.direct_tools import DirectTool, DirectTools
from voice_agent.dialogue.events import ENVELOPE, SIGNS_OF_PRESENCE, Clock, Listener
from voice_agent.dialogue.expectation import expected_answer
from voice_agent.dialogue.hook_runner import HookFailed
from voice_agent.dialogue.hooks import IncomingMessagePayload, Point, TurnFinishedPayload, TurnStartedPayload
from voice_agent.dialogue.journal import Journal
from voice_agent.dialogue.loop import RuntimeLoop
from voice_agent.dialogue.model_call import CallListener
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.places import places
from voice_agent.dialogue.prompt_sections import Prompt
from voice_agent.dialogue.recalling import begin_recall, recall_into
from voice_agent.dialogue.reply import SESSION_START as START_INTENT
from voice_agent.dialogue.reply import SILENCE as SILENCE_INTENT
from voice_agent.dialogue.reply import (
    ExpectedAnswer,
    HeardReply,
    InputKind,
    ReplySink,
    TurnResult,
    TurnStatus,
    UserInput,
)
from voice_agent.dialogue.sessions import Sessions
from voice_agent.dialogue.speculation import Speculation, is_pure
from voice_agent.dialogue.state import DialogueState
from voice_agent.dialogue.turn import ReplyWriter, Turn, unheard_turn
from voice_agent.dialogue.turn_queue import TurnQueue
from voice_agent.store.protocol import ConversationStore
from voice_agent.telemetry.metrics import SPECULATIONS

log = logging.getLogger(__name__)

MAX_UTTERANCE_CHARS = 16_000
"""Longer input is cut: nobody says this much in one breath."""
CLOSE_WAIT_S = 3.0
"""How long `close` waits for a turn that is still in its grace window."""
STORE_WAIT_S = 1.0
"""How long `close` waits for what was said to be on the disk."""


class LiveConversation:
    """Implements `voice_agent.dialogue.reply.Conversation`. Made by `Agent.open`."""

    def __init__(
        self, core: Core, loop: RuntimeLoop, sessions: Sessions, store: ConversationStore, clock: Clock
    ) -> None:
        self._core, self._loop, self._sessions, self._clock = core, loop, sessions, clock
        self._journal = Journal(core.events, core.state, core.project, store)
        self._queue = TurnQueue()
        self._direct = DirectTools(core)
        self._commits = Commits(core.events)
        self._last: Turn | None = None
        self._results: dict[str, Outcome] = {}

    @property
    def id(self) -> str:
        return self._core.events.conversation_id

    @property
    def expected(self) -> ExpectedAnswer | None:
        """What would answer the open question; see the Protocol."""
        return expected_answer(self._core.state)

    @property
    def events(self) -> Sequence[dict[str, Any]]:
        """The tracker so far, oldest first."""
        return self._core.events.events

    @property
    def state(self) -> DialogueState:
        """What the conversation is in the middle of. To be looked at, by tests and inspectors; never to be changed."""
        return self._core.state

    def use_channel(self, channel: str, *, voice: bool) -> None:
        """The caller has come back by another channel; the conversation goes on there."""
        self._core.channel, self._core.voice = channel, voice

    def use_metadata(self, metadata: Mapping[str, Any]) -> None:
        """The caller has come back, with what the application knows of them now; see `Agent.open`."""
        self._sessions.use_seeds(dict(metadata))
        events = self._core.events
        events.user_id = str(metadata.get("user_id", "")) or events.user_id
        events.environment = str(metadata.get("environment", "")) or events.environment

    def on_event(self, callback: Listener) -> Callable[[], None]:
        """Call back with each new tracker event. Returns an unsubscriber."""
        return self._core.events.on_event(callback)

    def on_model_call(self, listener: CallListener) -> Callable[[], None]:
        """Call back with each model call once it has ended: the exact prompt and the reply. Returns an unsubscriber."""
        return self._core.models.on_call(listener)

    def prompt_preview(self, text: str) -> Prompt:
        """Return the prompt that the first model call of a turn with ``text`` would get, as things stand now.

        Nothing is run or recorded. Steps that need no model, and hooks, come first in a real turn;
        `on_model_call` shows what they made of it.
        """
        return self._loop.preview(unheard_turn(UserInput(text), self._core.state.turn + 1))

    def line(self, name: str, nth: int = 0) -> str:
        """Return the wording of one of the service's own lines; see the Protocol.

        Raises:
            KeyError: No response has that name.
        """
        if self._core.project.responses.find(name, None) is None:
            raise KeyError(name)
        wording = self._core.wording(name, nth=nth)
        return "" if wording is None else wording.text

    async def turn(self, user: UserInput, *, turn_id: str, sink: ReplySink, cancel: CancelToken) -> TurnResult:
        """Run one turn; see the Protocol."""
        try:
            await self._queue.enter(cancel)
        except TurnCancelled:
            return TurnResult(turn_id, TurnStatus.CANCELLED)
        try:
            await self._journal.restore()
            try:
                return await self._run(user, turn_id, ReplyWriter(sink, cancel), cancel)
            finally:
                self._core.models.discard()
                self._core.events.turn_id, self._core.user, self._core.turn = "", None, None
                self._journal.hand_over()
        finally:
            self._queue.leave()

    @property
    def is_expired(self) -> bool:
        """Whether the next words begin a new session, as far as is known before what is stored has been read."""
        return self._sessions.expired(self._clock())

    def direct_tools(self) -> Mapping[str, DirectTool]:
        """Return the tools that a program may call now, by name; see `DirectTools`."""
        return self._direct.open()

    async def run_tool(self, name: str, arguments: Mapping[str, Any], cancel: CancelToken) -> Outcome:
        """Run one of `direct_tools` between turns, recorded like any other run.

        Raises:
            TurnCancelled: Cancelled before it was done.
        """
        await self._queue.enter(cancel)
        try:
            await self._journal.restore()
            return await self._direct.run(name, arguments, cancel)
        finally:
            self._journal.hand_over()
            self._queue.leave()

    @property
    def speculations_per_utterance(self) -> int:
        """How often the model may begin early; see `Speculating`."""
        return self._core.speculations

    async def speculate(
        self, user: UserInput, *, can_transfer: bool, can_send_digits: bool = False, cancel: CancelToken
    ) -> None:
        """Make the model call that a turn with ``user`` would begin with; see `Speculating`.

        Hooks run once for each real request, in the turn. Where one watches incoming words or requests, what the turn
        will ask is not known beforehand, and nothing is begun.
        """
        core = self._core
        watched = core.hooks.watches(Point.INCOMING_MESSAGE) or core.hooks.watches(Point.MODEL_REQUEST)
        expired = not core.state.session.id or self._sessions.expired(self._clock())
        turn = unheard_turn(user, core.state.turn + 1, can_transfer=can_transfer, can_send_digits=can_send_digits)
        blocked = watched or expired or not is_pure(core.state)
        if blocked or self._queue.is_busy or not await recall_into(core, turn, cancel) or self._queue.is_busy:
            SPECULATIONS.labels(outcome="blocked").inc()
            return
        turn.answer_due = True
        speculation = core.models.speculation = Speculation(self._loop.model, self._loop.preview(turn).request)
        await speculation.run(cancel)
        if cancel.is_cancelled and not speculation.adopted:
            SPECULATIONS.labels(outcome="cancelled").inc()
            if core.models.speculation is speculation:
                core.models.speculation = None

    async def go_on_from(self, old: LiveConversation, cancel: CancelToken) -> None:
        """Go on where ``old`` stands, the same conversation with an earlier version of the project.

        Waits until its turn has ended. After this ``old`` takes no more turns; it is still to be closed by `retire`.

        Raises:
            TurnCancelled: The turn that this is done for was cancelled; nothing has changed hands.
        """
        await old._queue.enter(cancel)
        try:
            self._journal.go_on_from(old._journal)
            self._commits.go_on_from(old._commits)
        finally:
            old._queue.leave()

    async def retire(self) -> None:
        """Another has gone on from here and the call is over: end what hooks still do."""
        await self._core.hooks.aclose()

    async def _run(self, user: UserInput, turn_id: str, reply: ReplyWriter, cancel: CancelToken) -> TurnResult:
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
        turn.results_before, self._results, self._last = self._results, {}, turn
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
                self._superseded(turn)
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

    def _superseded(self, turn: Turn) -> None:
        """The next turn goes on with this one: what ran in it has run."""
        self._results = turn.results_before | turn.results

    def _record_user(self, user: UserInput, turn_id: str) -> None:
        self._core.events.turn_id = turn_id
        self._core.events.append("user", {"text": user.text, "kind": user.kind.value})

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        """Record what was heard of a turn's reply; the first call for a turn counts."""
        if not self._commits.record(turn_id, reply):
            return
        if self._last is not None and self._last.id == turn_id and self._last.reply.said:
            self._core.state.heard(self._last.number, self._last.reply.said[-1], reply.unheard)
        self._journal.hand_over()

    def note(self, kind: str, **data: Any) -> None:
        """Record something that happened beside the turns."""
        if not kind.isidentifier() or kind in ENVELOPE:
            raise ValueError(f"{kind!r} cannot be the kind of an event")
        if kind == "turn_superseded" and self._last is not None and data.get("turn_id") == self._last.id:
            self._superseded(self._last)
        if kind in SIGNS_OF_PRESENCE:
            self._core.state.silences = 0
        self._core.events.append(kind, data)

    async def close(self, outcome: str) -> None:
        """The call is over; see the Protocol.

        After ``dropped``, ``failed`` or ``shutdown`` the session lives on, and who comes back to it soon is not
        greeted again. After ``disconnected`` it lives on as well. Any other outcome ends it.
        """
        locked = False
        try:
            async with asyncio.timeout(CLOSE_WAIT_S):
                await self._queue.enter()
                locked = True
        except TimeoutError:
            log.warning("conversation %s is closed while a turn is still running", self.id)
        try:
            await self._journal.restore()
            self._sessions.end(outcome, self._clock())
            await self._journal.settle(STORE_WAIT_S)
            await self._core.hooks.aclose()
        finally:
            if locked:
                self._queue.leave()
