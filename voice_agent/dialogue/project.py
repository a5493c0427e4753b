"""A loaded project: everything its files say, checked and linked. Immutable; shared by all conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from voice_agent.dialogue.blocks import Block, CollectStep, InstructionsStep, Paragraph, SetMemoryStep, ToolStep
from voice_agent.dialogue.conditions import Condition
from voice_agent.dialogue.endpoints import Endpoints
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.hook_runner import HookSet
from voice_agent.dialogue.knowledge import KnowledgeIndex
from voice_agent.dialogue.memory import Schema
from voice_agent.dialogue.responses import Responses
from voice_agent.dialogue.tools import Tool

if TYPE_CHECKING:
    from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig

SESSION_START = "default_session_start"
COMPLETED = "default_completed"
UNSUPPORTED = "default_unsupported_request_handler"
SILENCE = "default_silence_check_in"
SATISFACTION = "default_customer_satisfaction"
LIFECYCLE = frozenset({SESSION_START, COMPLETED, UNSUPPORTED, SILENCE, SATISFACTION})
"""Skills the engine starts by itself. A project overrides one with a folder of the same name."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The caller must say yes before the tool runs. Response names; None lets the model word it."""

    ask: str | None = None
    denied: str | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """What ``tool_constraints`` says of one tool.

    Attributes:
        on_success: Response said after a run, unless the result is data with ``ok`` false.
    """

    requires: Condition | None = None
    confirmation: Confirmation | None = None
    on_success: str | None = None
    description: str = ""
    interruptible: bool = True


@dataclass(frozen=True, slots=True)
class Trigger:
    """A response said by itself: on activation, or once when ``when`` becomes true."""

    response: str
    when: Condition | None = None


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.

    Attributes:
        id: Folder name: routing id and memory namespace.
        menu: Whether the model may choose it.
        lifecycle: The engine starts it; it never triggers "anything else?".
        path: Its skill.md.
        criteria: What must be true, in words the model judges by, before it may call the skill complete.
        knowledge: Search over its own references, if it has any.
        workflow: How the model is led while it is active; None for the agent's own way.
    """

    id: str
    name: str
    description: str
    path: Path
    examples: tuple[str, ...] = ()
    requires: Condition | None = None
    complete_when: Condition | None = None
    criteria: tuple[str, ...] = ()
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
    prose: tuple[Paragraph, ...] = ()
    blocks: Mapping[str, Block] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    menu: bool = True
    lifecycle: bool = False
    knowledge: KnowledgeIndex | None = None
    workflow: str | None = None

    @property
    def entry(self) -> Block | None:
        """The block a skill without prose starts with."""
        return None if self.prose else next(iter(self.blocks.values()), None)

    @property
    def fillable(self) -> tuple[Field, ...]:
        """Fields the model may fill from what the caller said when the skill starts."""
        owned = {f for block in self.blocks.values() for f in block.fields}
        return tuple(f for f in self.fields if f.llm_settable or f in owned)

    def constraint(self, tool: str) -> Constraint:
        return self.constraints.get(tool, _NO_CONSTRAINT)


_NO_CONSTRAINT = Constraint()


def reads_before_asking(block: Block, skill: Skill) -> bool:
    """Return whether ``block`` uses a field that the caller's words may fill before its first question."""
    fillable = set(skill.fillable)
    for step in block.steps:
        references = {declared.reference for declared in fillable}
        if isinstance(step, CollectStep | InstructionsStep):
            return False
        conditions = [branch.condition for branch in step.next]
        if any(condition is not None and references & set(condition.references) for condition in conditions):
            return True
        if isinstance(step, ToolStep):
            tool = skill.tools.get(step.tool)
            given = {value for value in step.arguments.values() if isinstance(value, Field)}
            bare = set(tool.live.parameter_names if tool else ()) - step.arguments.keys()
            if given & fillable or any(declared.name in bare for declared in fillable):
                return True
            written = {name for name, _ in tool.writes} if tool else set()
            fillable = {declared for declared in fillable if declared.name not in written}
        elif isinstance(step, SetMemoryStep):
            fillable -= {declared for declared, _ in step.values}
    return False


@dataclass(frozen=True, slots=True)
class Project:
    root: Path
    skills: Mapping[str, Skill]
    schema: Schema
    responses: Responses
    knowledge: KnowledgeIndex | None = None
    hooks: HookSet = field(default_factory=HookSet)
    endpoints: Endpoints = field(default_factory=Endpoints)
    workflows: tuple[type[AgenticWorkflowConfig], ...] = ()
    """Configurations of workflows that its plugins allow, those built in included; empty for these alone."""

    def menu(self) -> Iterable[Skill]:
        return (skill for skill in self.skills.values() if skill.menu)
