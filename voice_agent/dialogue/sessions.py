"""When a session begins and ends, and what its start and a caller's silence set off."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from voice_agent.dialogue.core import Core, log
from voice_agent.dialogue.fields import MemoryRefused
from voice_agent.dialogue.memory import PROJECT, Writer
from voice_agent.dialogue.project import SESSION_START, SILENCE
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.state import Question
from voice_agent.dialogue.turn import Turn

REPEATED_START_S = 10.0
"""A second ``/session_start`` this soon, with no word of the caller in between, greets nobody again."""
DROPPED_OUTCOMES = frozenset(("dropped", "failed", "shutdown"))
"""Ends of a call that its caller did not want: who comes back within the resume window is not greeted again."""
SURVIVING_OUTCOMES = DROPPED_OUTCOMES | {"disconnected"}
"""Ends of a call after which the caller may come back to the same session; one who hung up is greeted."""


class Sessions:
    """The session of one conversation. Moments come from the calendar clock: sessions outlive processes."""

    def __init__(self, core: Core, seeds: Mapping[str, Any], resume_window_s: float) -> None:
        self._core, self._seeds, self._resume_window_s = core, seeds, resume_window_s
        self._set_aside: Question | None = None

    def use_seeds(self, seeds: Mapping[str, Any]) -> None:
        """Fill the next session's memory with these. A session that goes on keeps what it began with."""
        self._seeds = seeds

    def expired(self, now: datetime) -> bool:
        """Return whether the next turn begins a new session."""
        session = self._core.state.session
        if not session.id or session.last_activity is None:
            return True
        minutes = self._core.agent.session_config.session_expiration_time
        return minutes > 0 and _distance_s(now, session.last_activity) > minutes * 60

    def begin(self, now: datetime) -> bool:
        """Begin a new session: nothing of the last one is kept but the tracker.

        Returns:
            Whether `SESSION_START` should run.
        """
        state = self._core.state
        expired = bool(state.session.id)
        state.clear()
        state.session.id = uuid.uuid4().hex[:12]
        state.session.started_at = state.session.last_activity = now
        state.session.user_turns, state.session.dropped_at = 0, None
        self._core.events.session_id = state.session.id
        self._core.events.append("session_started", {"after_expiry": expired})
        for name, value in self._seeds.items():
            declared = state.memory.schema.resolve(name, None)
            if declared is None or not declared.seed:
                continue
            try:
                state.memory.write(declared, value, Writer.SEED)
            except MemoryRefused as fault:
                log.warning("metadata does not fill %s.%s: %s", PROJECT, name, fault)
        return not expired or self._core.agent.session_config.start_session_after_expiry

    def is_repeated_start(self, now: datetime) -> bool:
        """Return whether a ``/session_start`` on a live session must stay silent.

        So it is for a reconnecting caller, and for a client that says it twice.
        """
        session = self._core.state.session
        if session.dropped_at is not None and _distance_s(now, session.dropped_at) <= self._resume_window_s:
            return True
        if session.started_at is None or session.user_turns:
            return False
        return _distance_s(now, session.started_at) <= REPEATED_START_S

    def touch(self, now: datetime, *, spoke: bool) -> None:
        """A turn happened."""
        session = self._core.state.session
        session.last_activity, session.dropped_at = now, None
        if spoke:
            session.user_turns += 1
            self._core.state.silences = 0

    def end(self, outcome: str, now: datetime) -> None:
        """The call is over."""
        session = self._core.state.session
        if not session.id:
            return
        if outcome in SURVIVING_OUTCOMES:
            session.dropped_at = now if outcome in DROPPED_OUTCOMES else None
            # The next start is a new call, however soon it comes.
            session.started_at = None
            return
        self._core.events.append("session_ended", {"outcome": outcome})
        self._core.state.clear()
        session.id = ""

    def start_skill(self, router: Router, turn: Turn) -> None:
        """Put ``default_session_start`` on top of whatever is open."""
        frame = self._core.state.frame_of(SESSION_START)
        if frame is not None:
            router.drop(frame, reason="restarted")
        router.start(turn, self._core.project.skills[SESSION_START], returns=True)

    def check_in(self, router: Router, turn: Turn) -> None:
        """The caller has been silent once more."""
        state = self._core.state
        state.silences += 1
        frame = state.frame_of(SILENCE)
        if frame is not None:
            router.drop(frame, reason="restarted")
        # Asking whether somebody is there does not withdraw what they were asked before.
        self._set_aside, state.question = state.question, None
        router.start(turn, self._core.project.skills[SILENCE], returns=True)
        prompts = self._core.agent.conversation.silence_prompts
        for name, value in (("silences", state.silences), ("prompts", prompts)):
            declared = state.memory.schema.resolve(name, SILENCE)
            if declared is not None:
                state.memory.write(declared, value, Writer.ENGINE)

    def restore_question(self) -> None:
        """Put back the question that `check_in` set aside, if the skill that asked it is on top again."""
        question, self._set_aside = self._set_aside, None
        top = self._core.state.top
        if question is not None and top is not None and top.skill.id == question.skill:
            self._core.state.question = question


def _distance_s(now: datetime, then: datetime) -> float:
    """Return the seconds between two moments, whichever the calendar puts first: it may have been set back."""
    return abs((now - then).total_seconds())
