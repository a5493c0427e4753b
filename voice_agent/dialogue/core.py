"""What the parts of one conversation's engine share, and how wording is said."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.config import AgentFile
from voice_agent.dialogue.conditions import Reference
from voice_agent.dialogue.dispatch import Dispatcher
from voice_agent.dialogue.events import EventLog
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.responses import Wording
from voice_agent.dialogue.state import DialogueState
from voice_agent.dialogue.turn import Turn

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Core:
    """One conversation's engine room.

    Attributes:
        channel: Name of the channel the caller came in by; chooses response variants.
        voice: The caller hears the replies.
    """

    project: Project
    agent: AgentFile
    state: DialogueState
    events: EventLog
    dispatcher: Dispatcher
    channel: str
    voice: bool

    def wording(self, name: str, skill: str | None = None, values: Mapping[str, Any] | None = None) -> Wording | None:
        """Return the response ``name`` as it reads now; None, and a warning, when nothing of it fits.

        Args:
            skill: The skill that says it; its own responses and fields come first.
            values: Placeholders that the engine fills by itself.
        """
        response = self.project.responses.find(name, skill)
        variant = None if response is None else response.choose(self.state.memory.read, self.channel)
        if variant is None:
            log.warning("response %s has no wording that fits", name)
            return None
        return Wording(name, variant.template.render(self._lookup(skill, values or {})), variant.interruptible)

    def _lookup(self, skill: str | None, values: Mapping[str, Any]) -> Any:
        memory = self.state.memory

        def lookup(reference: Reference | str) -> Any:
            if isinstance(reference, Reference):
                return memory.read(reference.namespace, reference.entry)
            if reference in values:
                return values[reference]
            declared = memory.schema.resolve(reference, skill)
            return None if declared is None else memory.read(declared.namespace, declared.name)

        return lookup

    def say(self, turn: Turn, name: str, skill: str | None = None, values: Mapping[str, Any] | None = None) -> None:
        """Say a configured response in this turn."""
        wording = self.wording(name, skill, values)
        if wording is not None:
            turn.reply.deliver(wording)
