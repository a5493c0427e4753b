"""One conversation: strict order of turns, what is heard of them, and what is saved."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from voice_agent.dialogue.cancellation import CancelToken, TurnCancelled
from voice_agent.dialogue.commits import Commits
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.direct_tools import DirectTool, DirectTools
from voice_agent.dialogue.events import ENVELOPE, SIGNS_OF_PRESENCE, Clock, Listener
from voice_agent.dialogue.expectation import expected_answer
from voice_agent.dialogue.hooks import Point
from voice_agent.dialogue.journal import Journal
from voice_agent.dialogue.loop import RuntimeLoop
from voice_agent.dialogue.model_call import CallListener
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.prompt_sections import Prompt
from voice_agent.dialogue.recalling import recall_into
from voice_agent.dialogue.reply import (
    ExpectedAnswer,
    HeardReply,
    ReplySink,
    TurnResult,
    TurnStatus,
    UserInput,
)
from voice_agent.dialogue.reply_writer import ReplyWriter
from voice_agent.dialogue.sessions import Sessions
from voice_agent.dialogue.speculation import Speculation, is_pure
from voice_agent.dialogue.state import DialogueState
from voice_agent.dialogue.turn import unheard_turn
from voice_agent.dialogue.turn_queue import TurnQueue
from voice_agent.dialogue.turns import Turns
from voice_agent.store.protocol import ConversationStore
from voice_agent.telemetry.metrics import SPECULATIONS

log = logging.getLogger(__name__)

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
        self._turns = Turns(core, loop, sessions, clock)

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
                return await self._turns.take(user, turn_id, ReplyWriter(sink, cancel), cancel)
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

    def commit_reply(self, turn_id: str, reply: HeardReply) -> None:
        """Record what was heard of a turn's reply; the first call for a turn counts."""
        if not self._commits.record(turn_id, reply):
            return
        last = self._turns.last
        if last is not None and last.id == turn_id and last.reply.said:
            self._core.state.heard(last.number, last.reply.said[-1], reply.unheard)
        self._journal.hand_over()

    def note(self, kind: str, **data: Any) -> None:
        """Record something that happened beside the turns."""
        if not kind.isidentifier() or kind in ENVELOPE:
            raise ValueError(f"{kind!r} cannot be the kind of an event")
        last = self._turns.last
        if kind == "turn_superseded" and last is not None and data.get("turn_id") == last.id:
            self._turns.supersede(last)
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
