"""The pure part of ordered blocks: from a position and memory to what must be done next.

No clock, no I/O, no model. `plan` moves over everything that is already settled (branches, filled
fields, satisfied instructions) and stops at the first step that needs the world.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field

from voice_agent.dialogue.blocks import (
    ActionStep,
    Block,
    CallStep,
    CollectStep,
    InstructionsStep,
    ListenStep,
    NoopStep,
    Step,
    ToolStep,
)
from voice_agent.dialogue.conditions import Read

log = logging.getLogger(__name__)

MAX_STEPS_PER_TURN = 100


class StepBudgetExceeded(Exception):
    """A block runs in a circle without ever waiting."""


@dataclass(slots=True)
class Budget:
    """Steps one turn may still take, over all blocks it touches."""

    left: int = MAX_STEPS_PER_TURN

    def spend(self, block: Block) -> None:
        self.left -= 1
        if self.left < 0:
            raise StepBudgetExceeded(f"block {block.id!r} took more than {MAX_STEPS_PER_TURN} steps without waiting")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a step that was done depended on.

    Attributes:
        arguments: `digest` of a tool's arguments; empty for other steps, and for a run that failed.
        read: Memory references that the tool has read by itself.
    """

    arguments: str = ""
    read: frozenset[str] = frozenset()


def digest(arguments_json: str) -> str:
    """Return what tells a tool's arguments from others."""
    return hashlib.sha256(arguments_json.encode()).hexdigest()[:16]


@dataclass(slots=True)
class Cursor:
    """A place in a block.

    Attributes:
        index: The step to do next; ``len(block.steps)`` is the end.
        since: Number of the turn in which the current step began to wait for the caller, if it did.
        answered: The model has replied at this instructions step.
        declined: The caller declined the confirmation this step asked for.
        passed: Steps that were done, in the order in which each was last done.
        again: Steps that were done before a correction moved the cursor back (`corrections`), and lie ahead again.
    """

    block: Block
    index: int = 0
    since: int | None = None
    answered: bool = False
    declined: bool = False
    passed: dict[str, Mark] = field(default_factory=dict)
    again: dict[str, Mark] = field(default_factory=dict)

    @property
    def step(self) -> Step | None:
        return self.block.steps[self.index] if self.index < len(self.block.steps) else None

    def go(self, index: int) -> None:
        self.index = index
        self.since, self.answered, self.declined = None, False, False

    def leave(self, index: int, mark: Mark | None = None) -> None:
        """The current step is done; go on to ``index``. A step that was passed over keeps its mark."""
        step = self.step
        if step is not None:
            before = self.again.pop(step.id, Mark())
            self.passed.pop(step.id, None)
            self.passed[step.id] = before if mark is None else mark
        self.go(index)

    def asks(self, turn: int) -> None:
        """The current step asks the caller. What was said before that is not known to fit any more; tools are."""
        self.since = turn
        self.again = {id: mark for id, mark in self.again.items() if isinstance(self.block.find(id), ToolStep)}


def following(block: Block, index: int, read: Read) -> int:
    """Return the index after step ``index``: the first branch that holds, else the step below.

    Branches of which none holds and no ``else`` end the block: going on by accident would be worse.
    """
    step = block.steps[index]
    if not step.next:
        return index + 1
    for branch in step.next:
        if branch.condition is None or branch.condition.holds(read):
            target = block.index(branch.then)
            return len(block.steps) if target is None else target
    log.error("no branch of step %r in block %r holds; the block ends", step.id, block.id)
    return len(block.steps)


def plan(cursor: Cursor, read: Read, turn: int, budget: Budget) -> Step | None:
    """Move ``cursor`` to the next step that needs doing and return it; None at the end of the block.

    Args:
        turn: Number of the current turn; a listen step is over in the turn after it began to wait.

    Raises:
        StepBudgetExceeded: The block moves in a circle.
    """
    while (step := cursor.step) is not None:
        if not _settled(cursor, step, read, turn) and not _is_repetition(cursor, step):
            return step
        budget.spend(cursor.block)
        cursor.leave(following(cursor.block, cursor.index, read))
    return None


def _is_repetition(cursor: Cursor, step: Step) -> bool:
    """Said or heard before a correction, and not to be said or heard again because of it."""
    talk = isinstance(step, InstructionsStep) and step.complete_when is None
    return step.id in cursor.again and (talk or isinstance(step, ActionStep | ListenStep | CallStep))


def _settled(cursor: Cursor, step: Step, read: Read, turn: int) -> bool:
    match step:
        case NoopStep():
            return True
        case CollectStep():
            return read(step.field.namespace, step.field.name) is not None
        case InstructionsStep():
            if step.complete_when is not None:
                return step.complete_when.holds(read)
            return cursor.answered
        case ListenStep():
            return cursor.since is not None and cursor.since < turn
        case _:
            return False


def done(cursor: Cursor, read: Read, budget: Budget, mark: Mark | None = None) -> None:
    """The current step has been done: move on.

    Args:
        mark: What a tool's run depended on.

    Raises:
        StepBudgetExceeded: The block moves in a circle.
    """
    budget.spend(cursor.block)
    cursor.leave(following(cursor.block, cursor.index, read), mark)
