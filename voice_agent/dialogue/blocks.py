"""Ordered blocks as data: steps, branches, paragraphs. Read from skill.md by `block_file`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from voice_agent.dialogue.conditions import Condition, Read
from voice_agent.dialogue.fields import Field

END = "END"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A stretch of prose, kept in the prompt only while ``condition`` holds."""

    text: str
    condition: Condition | None = None


def prose(paragraphs: tuple[Paragraph, ...], read: Read) -> str:
    """Return the paragraphs whose conditions hold, separated by blank lines."""
    return "\n\n".join(p.text for p in paragraphs if p.condition is None or p.condition.holds(read))


@dataclass(frozen=True, slots=True)
class Branch:
    """Where to go next; the first whose condition holds wins, one without a condition always does."""

    then: str
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """Something a step may run or hand over to."""

    kind: Literal["skill", "block"]
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What all steps share. No branch means: go on with the step below.

    Attributes:
        line: Line in skill.md.
    """

    id: str
    line: int
    next: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsStep(Step):
    """The model converses until ``complete_when`` holds; without it, until it has replied once.

    ``criteria`` tell the model in words what it is to reach; they decide nothing.
    """

    instructions: tuple[Paragraph, ...]
    complete_when: Condition | None = None
    criteria: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectStep(Step):
    """Get one memory field from the caller; ``utterance`` names the response that asks for it."""

    field: Field
    utterance: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStep(Step):
    """Say a response. ``delivery`` says how, before what the response itself says (see `delivery`)."""

    response: str
    delivery: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStep(Step):
    """Run a tool without the model. Arguments not given here are taken from memory by name.

    Attributes:
        arguments: Literal values, or a `Field` to read.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMemoryStep(Step):
    values: tuple[tuple[Field, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStep(Step):
    """Run a block or skill, then come back to this step's ``next``."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStep(Step):
    """Hand over to a block or skill and do not come back."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class NoopStep(Step):
    """Only evaluate ``next``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenStep(Step):
    """Wait for the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangUpStep(Step):
    """End the call once everything said before has been heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferStep(Step):
    """Put the caller through to a destination, named or read from memory. What comes after is for when that fails."""

    destination: str | Field


@dataclass(frozen=True, slots=True, kw_only=True)
class SendDigitsStep(Step):
    """Press keys on the telephone line, as they stand or read from memory."""

    digits: str | Field


@dataclass(frozen=True, slots=True)
class Block:
    id: str
    steps: tuple[Step, ...]
    line: int = 1
    name: str = ""
    description: str = ""

    def index(self, step_id: str) -> int | None:
        """Return the position of a step; None for END and unknown ids."""
        for position, step in enumerate(self.steps):
            if step.id == step_id:
                return position
        return None

    def find(self, step_id: str) -> Step | None:
        """Return a step by its id."""
        index = self.index(step_id)
        return None if index is None else self.steps[index]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields that collect steps own: the model may fill them while the block is active."""
        return tuple(dict.fromkeys(step.field for step in self.steps if isinstance(step, CollectStep)))
