"""What a workflow is to the runtime loop, and what its settings are.

steps ─▶ model needed? ─▶ is_spent ─ yes ─▶ conclude ─▶ the turn ends in an answer
  ▲                          └ no ─▶ step ─▶ waits │ goes on
  └──────────────────────────────────────────────────┘

Deterministic steps, gates, confirmations, cancellation, events and hooks are the loop's and the dispatch's;
a workflow decides how often the model is asked, with which words, and what happens at a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from voice_agent.dialogue.prompt_sections import Section
from voice_agent.dialogue.turn import Turn

if TYPE_CHECKING:
    from voice_agent.dialogue.workflows.thinker import Thinker


class Workflow(Protocol):
    """Leads the model through one turn. Made anew for every turn, so it may keep what it counts."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """What it adds to the system message, after the stable part."""
        ...

    def is_spent(self, turn: Turn) -> bool:
        """Return whether the turn has used up what it may ask of the model."""
        ...

    async def step(self, turn: Turn) -> bool:
        """Make one model call and do what it asks for. Returns whether the turn waits for the caller now.

        Raises:
            TurnCancelled: The turn was cancelled; what was done stays done.
            ModelError: The model failed.
        """
        ...

    async def conclude(self, turn: Turn) -> None:
        """A limit is reached and the model would be needed again: end the turn in an answer. Never an error."""
        ...


class AgenticWorkflowConfig(BaseModel):
    """Settings of a workflow: a name in the settings' list, fields with a schema, and the workflow made of them.

    Subclass it in a plugin and add the class to what the hook ``factory_allowed_agentic_workflows`` is given.
    The class's own name is its name in the settings.
    """

    # What stands under a field describes it, here and in a plugin, for whoever sets it.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    workflow: ClassVar[str] = ""
    """What ``workflow:`` in agent.yml or a skill calls it; the class's name if empty."""

    def build(self, thinker: Thinker) -> Workflow:
        """Return the workflow for one turn."""
        raise NotImplementedError
