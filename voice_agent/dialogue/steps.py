"""The deterministic part of a turn: does every step that needs no model, and says what must come next."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import isawaitable
from typing import Any

from voice_agent.dialogue.blocks import (
    ActionStep,
    CallStep,
    CollectStep,
    HangUpStep,
    InstructionsStep,
    LinkStep,
    ListenStep,
    SendDigitsStep,
    SetMemoryStep,
    Step,
    Target,
    ToolStep,
    TransferStep,
)
from voice_agent.dialogue.core import Core, log
from voice_agent.dialogue.dispatch import mark_of, record_tool
from voice_agent.dialogue.ending import Ending
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.fields import MemoryRefused
from voice_agent.dialogue.framework_tools import SEND_DIGITS
from voice_agent.dialogue.memory import Writer
from voice_agent.dialogue.offer import is_open, may_transfer
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.pressing import Presses
from voice_agent.dialogue.project import SILENCE, reads_before_asking
from voice_agent.dialogue.questions import Questions
from voice_agent.dialogue.routing import Router, RoutingRefused
from voice_agent.dialogue.state import Frame
from voice_agent.dialogue.stepper import Cursor, Mark, digest, done, plan
from voice_agent.dialogue.tool_arguments import step_arguments
from voice_agent.dialogue.tool_runs import ToolRuns
from voice_agent.dialogue.transferring import Transfers
from voice_agent.dialogue.turn import Turn


class Next(Enum):
    """What follows the deterministic steps."""

    WAIT = "wait"
    MODEL = "model"
    FILL = "fill"
    """The model may read field values out of what was said, nothing else."""
    ENDED = "ended"
    """The call is to be ended."""


class StepRunner:
    """Advances the stack until the caller, the model or the end is needed."""

    def __init__(self, core: Core, router: Router) -> None:
        self._core, self._router = core, router
        self.tool_runs = ToolRuns(core)
        self.questions = Questions(core, router, self.tool_runs)
        self.ending = Ending(core, router)
        self.transfers = Transfers(core, router, self.ending)
        self.presses = Presses(core)
        self._do: dict[type[Step], Callable[..., Any]] = {
            ActionStep: self._action,
            CollectStep: self._collect,
            InstructionsStep: self._instructions,
            ListenStep: self._listen,
            HangUpStep: self._hang_up,
            SetMemoryStep: self._set_memory,
            CallStep: self._call,
            LinkStep: self._link,
            ToolStep: self._tool,
            TransferStep: self._transfer,
            SendDigitsStep: self._send_digits,
        }

    async def advance(self, turn: Turn) -> Next:
        """Run steps back to back.

        Raises:
            TurnCancelled: The turn was cancelled; the pointer is on the first step not done.
            StepBudgetExceeded: Blocks move in a circle.
        """
        state = self._core.state
        while True:
            turn.cancel.check()
            if state.question is not None:
                return self._wait_or_model(turn)
            frame = state.top
            if frame is None:
                if state.farewell is not None and self.ending.end(turn):
                    return Next.ENDED
                if state.top is not None:
                    continue
                return self._wait_or_model(turn)
            self._fire_triggers(turn, frame)
            cursor = frame.cursor
            if cursor is None:
                complete = None if frame.skill.criteria else frame.skill.complete_when
                if complete is not None and complete.holds(state.memory.read):
                    self._router.finish(turn, frame)
                    continue
                if frame.fresh:
                    # A skill may begin by speaking, whether or not the caller has.
                    frame.fresh = False
                    return Next.MODEL
                return self._wait_or_model(turn)
            if self._must_fill_first(turn, frame, cursor):
                return Next.FILL
            if isinstance(cursor.step, ListenStep) and cursor.since is not None and cursor.since < turn.number:
                turn.considered = turn.fill_due = True
            step = plan(cursor, state.memory.read, turn.number, turn.budget)
            if step is None:
                self._router.block_ended(turn, frame)
                continue
            outcome = self._do[type(step)](turn, frame, cursor, step)
            if isawaitable(outcome):
                outcome = await outcome
            if outcome is not None:
                return Next(outcome)

    @staticmethod
    def _wait_or_model(turn: Turn) -> Next:
        return Next.MODEL if turn.answer_due else Next.WAIT

    def _done(self, turn: Turn, cursor: Cursor, mark: Mark | None = None) -> None:
        done(cursor, self._core.state.memory.read, turn.budget, mark)

    def _fire_triggers(self, turn: Turn, frame: Frame) -> None:
        for index, trigger in enumerate(frame.skill.triggers):
            if trigger.when is None or index in frame.fired:
                continue
            if trigger.when.holds(self._core.state.memory.read):
                frame.fired.add(index)
                self._core.say(turn, trigger.response, frame.skill.id)

    # --- steps ---------------------------------------------------------------------------------

    def _action(self, turn: Turn, frame: Frame, cursor: Cursor, step: ActionStep) -> None:
        # The pointer moves before anything is heard: what was cut off is not said again.
        self._done(turn, cursor)
        self._core.say(turn, step.response, frame.skill.id, delivery=step.delivery)
        turn.answer_due = not turn.considered

    def _collect(self, turn: Turn, frame: Frame, cursor: Cursor, step: CollectStep) -> Next | None:
        if cursor.since is None:
            if not turn.considered:
                return Next.MODEL
            if turn.fill_due and turn.utterance:
                return Next.FILL
            return self._ask(turn, frame, cursor, step)
        if turn.answer_due and cursor.since < turn.number:
            return Next.MODEL
        if cursor.since < turn.number and not turn.reply.is_question:
            # Whatever was said instead, the question is still open.
            return self._ask(turn, frame, cursor, step)
        return Next.WAIT

    def _ask(self, turn: Turn, frame: Frame, cursor: Cursor, step: CollectStep) -> Next:
        cursor.asks(turn.number)
        name = step.utterance or f"utter_ask_{step.field.name}"
        if self._core.project.responses.find(name, frame.skill.id) is None:
            return Next.MODEL
        self._core.say(turn, name, frame.skill.id)
        turn.answer_due = False
        return Next.WAIT

    def _instructions(self, turn: Turn, frame: Frame, cursor: Cursor, step: InstructionsStep) -> Next:
        arrived = cursor.since is None
        cursor.since = turn.number
        return Next.MODEL if arrived or turn.answer_due else Next.WAIT

    def _listen(self, turn: Turn, frame: Frame, cursor: Cursor, step: ListenStep) -> Next:
        if cursor.since is None:
            record_tool(self._core.events, "listen", "{}", Outcome(True, "{}"))
        cursor.since = turn.number
        return Next.WAIT

    def _hang_up(self, turn: Turn, frame: Frame, cursor: Cursor, step: HangUpStep) -> Next | None:
        if frame.skill.id == SILENCE:
            # Nobody is there who could be asked anything.
            self.ending.skip()
        return Next.ENDED if self.ending.end(turn) else None

    async def _transfer(self, turn: Turn, frame: Frame, cursor: Cursor, step: TransferStep) -> Next | None:
        if not may_transfer(self._core.state):
            # Held like any other tool: nothing but the caller or the model can change that now.
            return self._wait_or_model(turn)
        if (await self.transfers.step(turn, frame, step)).completed:
            return Next.ENDED
        self._done(turn, cursor)
        return None

    async def _send_digits(self, turn: Turn, frame: Frame, cursor: Cursor, step: SendDigitsStep) -> Next | None:
        if not is_open(self._core.state, SEND_DIGITS):
            return self._wait_or_model(turn)
        await self.presses.step(turn, frame, step)
        self._done(turn, cursor)
        return None

    @staticmethod
    def _must_fill_first(turn: Turn, frame: Frame, cursor: Cursor) -> bool:
        """What the caller has already said decides where the block goes before it asks for anything."""
        due = turn.fill_due and turn.considered and bool(turn.utterance) and cursor.index == 0
        return due and reads_before_asking(cursor.block, frame.skill)

    def _set_memory(self, turn: Turn, frame: Frame, cursor: Cursor, step: SetMemoryStep) -> None:
        for declared, value in step.values:
            try:
                self._core.state.memory.write(declared, value, Writer.STEP)
            except MemoryRefused as fault:
                log.warning("step %s of %s: %s", step.id, frame.skill.id, fault)
        self._done(turn, cursor)

    def _call(self, turn: Turn, frame: Frame, cursor: Cursor, step: CallStep) -> None:
        try:
            self._enter(turn, frame, step.target, returns=True)
        except RoutingRefused as fault:
            log.error("step %s of %s cannot call %s: %s", step.id, frame.skill.id, step.target.id, fault)
            self._done(turn, cursor)

    def _link(self, turn: Turn, frame: Frame, cursor: Cursor, step: LinkStep) -> None:
        block = frame.skill.blocks.get(step.target.id) if step.target.kind == "block" else None
        turn.budget.spend(cursor.block)
        if block is not None:
            frame.cursors.pop()
            self._router.enter(frame, block)
            return
        self._router.hand_over(frame)
        try:
            self._enter(turn, frame, step.target, returns=frame.returns)
        except RoutingRefused as fault:
            log.error("step %s of %s cannot go to %s: %s", step.id, frame.skill.id, step.target.id, fault)
            self._router.came_back(turn, frame)

    def _enter(self, turn: Turn, frame: Frame, target: Target, *, returns: bool) -> None:
        block = frame.skill.blocks.get(target.id) if target.kind == "block" else None
        if block is not None:
            turn.budget.spend(block)
            self._router.enter(frame, block)
            return
        skill = self._core.project.skills[target.id]
        if skill.requires is not None and not skill.requires.holds(self._core.state.memory.read):
            raise RoutingRefused(f"what {skill.id} requires does not hold")
        self._router.start(turn, skill, returns=returns)

    # --- tools ---------------------------------------------------------------------------------

    async def _tool(self, turn: Turn, frame: Frame, cursor: Cursor, step: ToolStep) -> Next | None:
        tool = frame.skill.tools[step.tool].live
        arguments = step_arguments(tool, step, frame.skill, self._core.state.memory)
        before = cursor.again.get(step.id)
        if before is not None and before.arguments == digest(to_json(arguments)):
            # It ran before a correction that has changed nothing for it.
            self._done(turn, cursor)
            return None
        constraint = frame.skill.constraint(step.tool)
        read = self._core.state.memory.read
        if constraint.requires is not None and not constraint.requires.holds(read):
            # Held, not failed: nothing but the caller or the model can change that now.
            return self._wait_or_model(turn)
        if constraint.confirmation is not None:
            if cursor.declined:
                return self._wait_or_model(turn)
            self.questions.hold(turn, frame.skill, step.tool, arguments, step=step.id)
            return self._wait_or_model(turn)
        outcome = await self.tool_runs.run(turn, frame, tool, arguments, step=step.id)
        turn.note_tool(tool.name, to_json(arguments), outcome.json)
        if outcome.unreachable:
            self._core.say_unreachable(turn, frame.skill.id)
        self._done(turn, cursor, mark_of(arguments, outcome))
        return None
