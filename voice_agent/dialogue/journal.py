"""Carries a conversation to the store while it happens, and back after a restart.

turn      ──record●──record●────await────record●──await──end
journal             hand over ▲ records + state      ▲          the store makes both durable together

Records are handed over whenever the turn comes to a wait, with the state as it is then. Waits are
just where a turn may be cancelled, and the engine leaves a state fit to go on from at each of them;
so a process that dies is, to the conversation, a turn that was cancelled at its last wait. A tool
whose run was recorded is behind its step in that state, and does not run again.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from voice_agent.dialogue.events import EventLog
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.replay import moment_of, open_turns, replay
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.dialogue.state import DialogueState, Session, restore, snapshot
from voice_agent.store.protocol import ConversationStore, StoredConversation, StoreUnavailable

log = logging.getLogger(__name__)

MAX_KEPT = 2_000
"""Records kept while the store takes none at all."""
REPLAYED = 20_000
"""Records read when there is no snapshot to begin from."""


class Journal:
    """One conversation's way to its store and back."""

    def __init__(self, events: EventLog, state: DialogueState, project: Project, store: ConversationStore) -> None:
        self._events, self._state, self._project, self._store = events, state, project, store
        self._restored = self._scheduled = False
        self._kept: list[dict[str, Any]] = []
        # Weak, so that a conversation nobody holds is gone at once and not when the collector comes by.
        this = weakref.ref(self)

        def recorded(event: Mapping[str, Any]) -> None:
            journal = this()
            if journal is not None:
                journal._recorded()

        events.on_event(recorded)

    # --- to the store --------------------------------------------------------------------------

    def _recorded(self) -> None:
        if self._scheduled or not self._restored:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._scheduled = True
        # Runs when the turn has come to its next wait: only there is the state a whole one.
        loop.call_soon(self.hand_over)

    def hand_over(self, *, state_alone: bool = False) -> None:
        """Give the store what is new, and the state. Not to be called by a step of a turn between two waits.

        Args:
            state_alone: The state has changed without a record.
        """
        self._scheduled = False
        if not self._restored:
            return
        self._kept += self._events.take_unsaved()
        if not self._kept and not (state_alone and self._state.turn):
            return
        try:
            self._store.append(self._events.conversation_id, self._kept, snapshot(self._state))
        except Exception:
            log.exception("conversation %s could not be handed to the store", self._events.conversation_id)
            del self._kept[:-MAX_KEPT]
        else:
            self._kept = []

    async def settle(self, timeout_s: float) -> None:
        """Hand over what is new and wait, within limits, until it is durable."""
        self.hand_over(state_alone=True)
        try:
            if not await self._store.flush(timeout_s):
                # The store itself says once what is wrong.
                log.debug("conversation %s is not on the disk yet", self._events.conversation_id)
        except Exception:
            log.exception("the store of conversation %s failed", self._events.conversation_id)

    # --- from the store ------------------------------------------------------------------------

    async def restore(self) -> None:
        """Take over what the store knows, once. A conversation that cannot be loaded begins anew."""
        if self._restored:
            return
        try:
            stored = await self._load()
        except StoreUnavailable as fault:
            log.warning("conversation %s begins anew: %s", self._events.conversation_id, fault)
            stored = None
        except Exception:
            log.exception("conversation %s could not be loaded and begins anew", self._events.conversation_id)
            stored = None
        # Another turn cannot have restored it meanwhile: the caller holds the conversation's lock.
        self._restored = True
        if stored is not None:
            self._take_over(stored)
            self._close_what_was_cut_off(stored.events)
        self.hand_over()

    def go_on_from(self, old: Journal) -> None:
        """Take over everything from ``old``, the journal of the same conversation that is not used any more.

        What it never read from the store is still to be read.
        """
        if not old._restored:
            return
        old.hand_over(state_alone=True)
        events = old._events.events
        last = events[-1]["sequence"] if events else None
        self._restored = True
        self._take_over(StoredConversation(events, snapshot(old._state), last))
        self._kept, old._kept = old._kept, []

    async def _load(self) -> StoredConversation | None:
        conversation_id = self._events.conversation_id
        stored = await self._store.load(conversation_id)
        if stored is not None and stored.events and _base(stored) is None:
            stored = await self._store.load(conversation_id, max_events=REPLAYED)
        return stored

    def _take_over(self, stored: StoredConversation) -> None:
        self._events.restore(stored.events)
        self._restore_state(stored)
        self._events.session_id = self._state.session.id

    def _close_what_was_cut_off(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Record the end of what the last process was in the middle of."""
        interrupted = open_turns(events)
        for turn_id in interrupted:
            payload = {"turn_id": turn_id, "status": TurnStatus.CANCELLED.value, "reason": "crash"}
            self._events.append("turn_finished", payload)
        session = self._state.session
        if session.id and session.dropped_at is None and events:
            # Nobody said goodbye and nobody hung up: the line was lost with the process.
            session.dropped_at = moment_of(events[-1])
        if interrupted:
            log.warning(
                "conversation %s was cut off in the middle of a turn and goes on after it", self._events.conversation_id
            )

    def _restore_state(self, stored: StoredConversation) -> None:
        base = _base(stored)
        if base is not None and stored.state is not None:
            try:
                lost = restore(self._state, stored.state, self._project)
            except Exception:
                log.exception(
                    "the snapshot of conversation %s does not fit; its records are replayed",
                    self._events.conversation_id,
                )
            else:
                self._report(lost)
                newer = [event for event in stored.events if event["sequence"] > base]
                if newer:
                    replay(self._state, newer, self._project)
                return
        self._state.clear()
        self._state.session, self._state.turn, self._state.activations = Session(), 0, 0
        replay(self._state, stored.events, self._project)

    def _report(self, lost: Sequence[str]) -> None:
        if lost:
            log.warning("conversation %s: the project no longer has %s", self._events.conversation_id, ", ".join(lost))


def _base(stored: StoredConversation) -> int | None:
    """Return the last record that the snapshot includes, if there is one to begin from.

    A snapshot that ends before the oldest record at hand has a gap behind it and cannot be continued.
    """
    if stored.state is None or stored.state_sequence is None:
        return None
    oldest = stored.events[0]["sequence"] if stored.events else 0
    return stored.state_sequence if stored.state_sequence >= oldest - 1 else None
