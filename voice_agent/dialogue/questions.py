"""Yes or no: a held tool call, or an interrupted skill that might go on."""

from __future__ import annotations

from typing import Any

from voice_agent.dialogue.core import Core
from voice_agent.dialogue.dispatch import mark_of
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.project import Skill
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.state import Frame, PendingCall, ResumeOffer
from voice_agent.dialogue.stepper import done
from voice_agent.dialogue.tool_arguments import call_in_words
from voice_agent.dialogue.tool_runs import ToolRuns
from voice_agent.dialogue.turn import Turn


class Questions:
    """Asks them, and does what follows from the answer."""

    def __init__(self, core: Core, router: Router, tool_runs: ToolRuns) -> None:
        self._core, self._router, self._tool_runs = core, router, tool_runs

    def hold(self, turn: Turn, skill: Skill, tool: str, arguments: dict[str, Any], *, step: str | None) -> None:
        """Hold a call and ask the caller about it.

        Args:
            step: The step that wants it; None where the model does.
        """
        self._core.state.question = question = PendingCall(tool, arguments, skill.id, turn.number, step)
        self._core.events.append("confirmation_requested", {"tool": tool})
        self._ask(turn, skill, question)
        turn.answer_due = False

    def _ask(self, turn: Turn, skill: Skill, question: PendingCall) -> None:
        confirmation = skill.constraint(question.tool).confirmation
        ask = confirmation.ask if confirmation else None
        about = "" if ask else call_in_words(skill, question.tool, question.arguments)
        self._core.say(turn, ask or "utter_confirm", skill.id, about=about)

    def repeat(self, turn: Turn) -> None:
        """Ask the open question once more."""
        question, top = self._core.state.question, self._core.state.top
        if isinstance(question, ResumeOffer) and top is not None:
            self._router.say_resume_offer(turn, top)
        elif isinstance(question, PendingCall) and top is not None:
            self._ask(turn, top.skill, question)

    def unasked(self, turn: Turn, *, worded: bool) -> bool:
        """Whether a yes counts for nothing: the caller had not yet been asked when they spoke.

        A question that was cut before its first word is asked again. One that sounded after the words has just been
        heard and stays open, so nothing is said unless a model has already said something (``worded``).
        """
        question = self._core.state.question
        if not isinstance(question, PendingCall) or not (question.unheard or turn.user.early):
            return False
        turn.answer_due = False
        if question.unheard or worded:
            # From now on what is heard of this turn's reply counts.
            question.unheard, question.asked = False, turn.number
            self.repeat(turn)
        else:
            turn.silent = True
        return True

    async def yes(self, turn: Turn) -> str:
        """The caller agreed. The record of a held call is consumed before it runs: never twice.

        Returns:
            JSON for the model.

        Raises:
            TurnCancelled: The tool was cut off.
        """
        question, frame = self._core.state.question, self._core.state.top
        self._core.state.question = None
        if isinstance(question, ResumeOffer):
            turn.answer_due = False
            if frame is not None:
                self._router.resume_accepted(frame)
            return to_json({"ok": True})
        if question is None or frame is None or frame.skill.id != question.skill:
            return to_json({"error": "Nothing is waiting for a yes."})
        requires = frame.skill.constraint(question.tool).requires
        if requires is not None and not requires.holds(self._core.state.memory.read):
            self._resolved(question, confirmed=False, reason="what it requires no longer holds")
            return to_json({"error": f"{question.tool} is not allowed any more. Not executed."})
        self._resolved(question, confirmed=True, reason="")
        return await self._run(turn, frame, question)

    async def _run(self, turn: Turn, frame: Frame, question: PendingCall) -> str:
        said = len(turn.reply.said)
        tool = frame.skill.tools[question.tool].live
        outcome = await self._tool_runs.run(turn, frame, tool, question.arguments, step=question.step)
        cursor = frame.cursor
        if question.step is not None and cursor is not None:
            done(cursor, self._core.state.memory.read, turn.budget, mark_of(question.arguments, outcome))
            turn.answer_due = False
        else:
            turn.answer_due = len(turn.reply.said) == said
        return outcome.json

    def no(self, turn: Turn, *, worded: bool) -> str:
        """The caller declined; ``worded`` when the model has already said something to it."""
        question, frame = self._core.state.question, self._core.state.top
        self._core.state.question = None
        turn.answer_due = False
        if isinstance(question, ResumeOffer):
            if frame is not None:
                self._router.drop(frame, reason="not resumed")
            # What was interrupted before that may go on as well; one question at a time.
            if not self._router.offer_resume(turn) and not worded:
                self._core.say(turn, "utter_resume_declined")
            return to_json({"ok": True})
        if question is None or frame is None:
            return to_json({"error": "Nothing is waiting for a no."})
        self._resolved(question, confirmed=False, reason="the caller declined")
        if question.step is not None and frame.cursor is not None:
            frame.cursor.declined = True
        if not worded:
            confirmation = frame.skill.constraint(question.tool).confirmation
            denied = confirmation.denied if confirmation else None
            about = "" if denied else call_in_words(frame.skill, question.tool, question.arguments)
            self._core.say(turn, denied or "utter_confirm_denied", frame.skill.id, about=about)
        return to_json({"ok": True, "executed": False})

    def _resolved(self, question: PendingCall, *, confirmed: bool, reason: str) -> None:
        payload = {"tool": question.tool, "confirmed": confirmed, "reason": reason}
        self._core.events.append("confirmation_resolved", payload)
