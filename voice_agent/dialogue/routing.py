"""The stack of skills: starting, finishing, cancelling, interrupting and resuming them."""

from __future__ import annotations

from voice_agent.dialogue.blocks import Block, CallStep
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.project import COMPLETED, Skill
from voice_agent.dialogue.state import MAX_DEPTH, Frame, PendingCall, ResumeOffer
from voice_agent.dialogue.stepper import Cursor, done
from voice_agent.dialogue.turn import Turn


class RoutingRefused(Exception):
    """A skill cannot be started now. Fit for the model to read."""


def spoken_name(skill: Skill) -> str:
    """Return the skill's name as it reads inside a sentence; an abbreviation stays as it is."""
    name = skill.name
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


class Router:
    def __init__(self, core: Core) -> None:
        self._core = core

    def start(self, turn: Turn, skill: Skill, *, returns: bool = False) -> None:
        """Put ``skill`` on top of the stack, or raise it there if it lies lower.

        Args:
            returns: The skill below called it and goes on by itself afterwards.

        Raises:
            RoutingRefused: It is below and would call itself, or the stack is full.
        """
        state = self._core.state
        below = state.frame_of(skill.id)
        if below is not None and below is state.top:
            return
        if below is not None and returns:
            raise RoutingRefused(f"{skill.id} is already waiting for this to finish.")
        if below is not None and state.top in state.joined(below):
            # What it called is at work for it.
            return
        self.drop_question("another skill was started")
        if below is not None:
            self._interrupt_top(returns)
            state.raise_to_top(below)
            self._resumed(below)
            return
        if len(state.stack) >= MAX_DEPTH and not skill.lifecycle:
            raise RoutingRefused(f"No more than {MAX_DEPTH} skills can be open at once.")
        self._interrupt_top(returns)
        state.activations += 1
        frame = Frame(skill, state.activations, returns)
        if skill.entry is not None:
            frame.cursors.append(Cursor(skill.entry))
        state.memory.begin(skill.id)
        state.stack.append(frame)
        self._core.events.append("skill_activated", {"skill": skill.id, "returns": returns})
        if skill.entry is not None:
            self._core.events.append("ordered_block_started", {"skill": skill.id, "block": skill.entry.id})
        for trigger in skill.triggers:
            if trigger.when is None:
                self._core.say(turn, trigger.response, skill.id)

    def _interrupt_top(self, returns: bool) -> None:
        top = self._core.state.top
        if top is not None and not returns and top.cursors and not top.skill.lifecycle:
            top.interrupted = True
            self._core.events.append("skill_interrupted", {"skill": top.skill.id})

    def enter(self, frame: Frame, block: Block) -> None:
        """Begin a block inside ``frame``.

        Raises:
            RoutingRefused: Blocks are nested too deeply.
        """
        if len(frame.cursors) >= MAX_DEPTH:
            raise RoutingRefused(f"Blocks of {frame.skill.id} are nested more than {MAX_DEPTH} deep.")
        frame.cursors.append(Cursor(block))
        self._core.events.append("ordered_block_started", {"skill": frame.skill.id, "block": block.id})

    def block_ended(self, turn: Turn, frame: Frame) -> None:
        """The innermost block of ``frame`` has reached its end."""
        ended = frame.cursors.pop()
        done = {"skill": frame.skill.id, "block": ended.block.id, "steps": list(ended.passed)}
        self._core.events.append("ordered_block_completed", done)
        if frame.cursors:
            self._after_call(turn, frame)
        elif not frame.skill.prose:
            self.finish(turn, frame)
        else:
            turn.answer_due = True

    def _after_call(self, turn: Turn, frame: Frame) -> None:
        cursor = frame.cursor
        if cursor is not None and isinstance(cursor.step, CallStep):
            done(cursor, self._core.state.memory.read, turn.budget)

    def came_back(self, turn: Turn, ended: Frame) -> None:
        """``ended`` is gone and nothing took its place: what lies below goes on."""
        self._resume(turn, ended, ask_for_more=False)

    def finish(self, turn: Turn, frame: Frame) -> None:
        """``frame`` has done its work: pop it and go on with what lies below."""
        self._core.events.append("skill_completed", {"skill": frame.skill.id})
        self._remove(frame)
        self._resume(turn, frame, ask_for_more=True)

    def cancel(self, turn: Turn, frame: Frame, *, reason: str) -> None:
        """The caller has ended ``frame`` before its time.

        A block that called it ends with it: to the caller they are one thing. Prose that called it has
        a model to see that it was cancelled.
        """
        ended = [frame]
        for below in self._core.state.callers(frame):
            if not below.cursors:
                break
            ended.append(below)
        for each in ended:
            self._end(each, reason)
        self.drop_question("the skill was cancelled")
        self._resume(turn, ended[-1], ask_for_more=False)

    def drop(self, frame: Frame, *, reason: str) -> None:
        """End ``frame`` and what waits for it, and say or resume nothing."""
        for each in [frame, *self._core.state.callers(frame)]:
            self._end(each, reason)

    def hand_over(self, frame: Frame) -> None:
        """End ``frame`` alone: whoever waits for it waits for what takes its place."""
        self._end(frame, "link")

    def _end(self, frame: Frame, reason: str) -> None:
        self._core.events.append("skill_cancelled", {"skill": frame.skill.id, "reason": reason})
        self._remove(frame)

    def _remove(self, frame: Frame) -> None:
        self._core.state.stack.remove(frame)
        self._core.state.memory.end(frame.skill.id)

    def _resume(self, turn: Turn, ended: Frame, *, ask_for_more: bool) -> None:
        state = self._core.state
        top = state.top
        if top is None:
            # A caller who is still owed an answer, or has just been asked something, is not asked what else they want.
            free = turn.considered and not turn.reply.is_question and state.farewell is None
            if ask_for_more and free and not ended.skill.lifecycle:
                self.start(turn, self._core.project.skills[COMPLETED])
        elif ended.returns and not ended.skill.lifecycle:
            self._after_call(turn, top)
            if not top.cursors:
                turn.answer_due = True
        elif not ended.skill.lifecycle:
            self.offer_resume(turn)

    def offer_resume(self, turn: Turn) -> bool:
        """Ask whether to go on with the skill on top, if it was interrupted. Returns whether that was asked."""
        top = self._core.state.top
        if top is None or not top.interrupted:
            return False
        self.say_resume_offer(turn, top)
        self._core.state.question = ResumeOffer(top.skill.id, turn.number)
        turn.answer_due = False
        return True

    def say_resume_offer(self, turn: Turn, frame: Frame) -> None:
        """Ask about ``frame`` by the name of what the caller came for: the skill that called it, if one did."""
        skill = [frame, *self._core.state.callers(frame)][-1].skill
        self._core.say(turn, "utter_resume_offer", skill.id, {"skill_name": spoken_name(skill)})

    def resume_accepted(self, frame: Frame) -> None:
        self._resumed(frame)

    def _resumed(self, frame: Frame) -> None:
        """The caller is back at ``frame``: what it was waiting for is asked anew, and a no of then is no no of now."""
        for each in self._core.state.joined(frame):
            each.interrupted = False
            if each.cursor is not None:
                each.cursor.since, each.cursor.declined = None, False
        self._core.events.append("skill_resumed", {"skill": frame.skill.id})

    def drop_question(self, why: str) -> None:
        """Forget an open question; a held call is never executed later."""
        question = self._core.state.question
        if isinstance(question, PendingCall):
            self._core.events.append(
                "confirmation_resolved", {"tool": question.tool, "confirmed": False, "reason": why}
            )
        self._core.state.question = None
