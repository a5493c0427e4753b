"""Who leads the model in one turn."""

from __future__ import annotations

import logging

from voice_agent.dialogue.workflows.catalogue import Selection
from voice_agent.dialogue.workflows.mantle import Mantle
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig, Workflow
from voice_agent.dialogue.workflows.thinker import Thinker

log = logging.getLogger(__name__)


class Leading:
    """The workflows of one turn. What is selected when it begins stays so to its end.

    A turn that goes from one skill to another may change its workflow; one that it comes back to goes on
    counting where it was.
    """

    def __init__(self, thinker: Thinker, selection: Selection) -> None:
        self._thinker, self._selection = thinker, selection
        self._made: list[tuple[AgenticWorkflowConfig, Workflow]] = []

    def now(self) -> Workflow:
        """Return the workflow of the skill that is active now."""
        top = self._thinker.core.state.top
        config = self._selection.config_for(top.skill.workflow if top is not None else None)
        for known, workflow in self._made:
            if known is config or known == config:
                return workflow
        workflow = self._build(config)
        self._made.append((config, workflow))
        return workflow

    def _build(self, config: AgenticWorkflowConfig) -> Workflow:
        try:
            return config.build(self._thinker)
        except Exception:
            log.exception("the workflow %s cannot be made: the default one is used", type(config).__name__)
            return Mantle(self._thinker)
