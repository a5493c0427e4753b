"""The end of a call: what is to come before it, the goodbye, and a caller who goes on after all."""

from __future__ import annotations

from voice_agent.dialogue.core import Core
from voice_agent.dialogue.dispatch import record_tool
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.turn import Turn


class Ending:
    """Ends calls of one conversation.

    ::

        hangup ─▶ skills of `before_end`, one after the other ─▶ goodbye ─▶ hang-up
                     └── the caller wants something else ─▶ stay: the call goes on
    """

    def __init__(self, core: Core, router: Router) -> None:
        self._core, self._router = core, router

    @property
    def says_goodbye(self) -> bool:
        """Nothing comes before the end (any more): who wants to end the call says goodbye now."""
        return self._core.state.took_leave or not self._core.agent.conversation.before_end

    def end(self, turn: Turn) -> bool:
        """End the call after what has been said, and after the skills that are to run before the end.

        A barge-in before the goodbye is heard keeps the caller on the line.

        Returns:
            Whether it is ended now; otherwise a skill is on top that comes first.
        """
        turn.cancel.check()
        state = self._core.state
        if state.farewell is None and not self.says_goodbye:
            self._clear("hangup")
            state.farewell, state.took_leave = list(self._core.agent.conversation.before_end), True
        if state.farewell:
            self._router.start(turn, self._core.project.skills[state.farewell.pop(0)])
            # Goodbye is no answer to what is asked now.
            turn.answer_due = turn.fill_due = False
            return False
        if state.farewell is not None:
            self._core.say(turn, "utter_hangup_goodbye")
        state.farewell = None
        events = self._core.events

        def ended() -> None:
            # Recorded when nothing can keep the call any more: a reply that is cut until then has ended nothing.
            record_tool(events, "hangup", "{}", Outcome(True, "{}"), turn_id=turn.id)

        turn.reply.hang_up("completed", ended)
        self._clear("hangup")
        return True

    def handed_over(self) -> None:
        """The caller was put through to somebody else: nothing is left to be done here."""
        self._core.state.farewell = None
        self._clear("transfer")

    def skip(self) -> None:
        """What was to come before the end is left out."""
        self._core.state.farewell, self._core.state.took_leave = None, True

    def stay(self) -> None:
        """The caller wants something after all: what was to come before the end comes when it ends."""
        state = self._core.state
        if state.farewell is not None:
            state.farewell, state.took_leave = None, False
            self._clear("the caller went on")

    def _clear(self, reason: str) -> None:
        while (top := self._core.state.top) is not None:
            self._router.drop(top, reason=reason)
        self._router.drop_question(reason)
