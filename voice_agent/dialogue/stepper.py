"""The pure part of ordered blocks: from a position and memory to what must be done next.

No clock, no I/O, no model. `plan` moves over everything that is already settled (branches, filled
fields, satisfied instructions) and stops at the first step that needs the world.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from voice_agent.dialogue.blocks import Block, CollectStep, InstructionsStep, ListenStep, NoopStep, Step
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


@dataclass(slots=True)
class Cursor:
    """A place in a block.

    Attributes:
        index: The step to do next; ``len(block.steps)`` is the end.
        since: Number of the turn in which the current step began to wait for the caller, if it did.
        answered: The model has replied at this instructions step.
        declined: The caller declined the confirmation this step asked for.
    """

    block: Block
    index: int = 0
    since: int | None = None
    answered: bool = False
    declined: bool = False

    @property
    def step(self) -> Step | None:
        return self.block.steps[self.index] if self.index < len(self.block.steps) else None

    def go(self, index: int) -> None:
        self.index = index
        self.since, self.answered, self.declined = None, False, False


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
        if not _settled(cursor, step, read, turn):
            return step
        budget.spend(cursor.block)
        cursor.go(following(cursor.block, cursor.index, read))
    return None


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


def done(cursor: Cursor, read: Read, budget: Budget) -> None:
    """The current step has been done: move on.

    Raises:
        StepBudgetExceeded: The block moves in a circle.
    """
    budget.spend(cursor.block)
    cursor.go(following(cursor.block, cursor.index, read))
