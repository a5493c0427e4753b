"""The default workflow: the model is asked as often as judgment is needed, within `max_model_iterations`."""

from __future__ import annotations

import logging
from typing import ClassVar

from voice_agent.dialogue.prompt_sections import Section
from voice_agent.dialogue.turn import Turn
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig
from voice_agent.dialogue.workflows.thinker import Thinker, Thought

log = logging.getLogger(__name__)


class CoreAgenticWorkflowConfig(AgenticWorkflowConfig):
    """The default workflow. It has no settings of its own."""

    workflow: ClassVar[str] = "mantle"

    def build(self, thinker: Thinker) -> Mantle:
        return Mantle(thinker)


class Mantle:
    """Implements `Workflow`."""

    sections: tuple[Section, ...] = ()

    def __init__(self, thinker: Thinker) -> None:
        self._thinker = thinker

    def is_spent(self, turn: Turn) -> bool:
        return turn.model_calls >= self._thinker.core.agent.max_model_iterations

    async def step(self, turn: Turn) -> bool:
        turn.procedure_limit = None
        thought = await self._thinker.think(turn)
        if thought is Thought.STUCK:
            self._thinker.give_up(turn)
            return True
        return thought is Thought.WAIT

    async def conclude(self, turn: Turn) -> None:
        log.warning("turn %s used all of its %d model calls", turn.id, turn.model_calls)
        turn.note_limit("iterations", self._thinker.core.events)
        self._thinker.give_up(turn)
