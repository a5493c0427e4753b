"""What the parts of one conversation's engine share, and how wording is said."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from voice_agent.config import AgentFile, TransferOptions
from voice_agent.dialogue.conditions import Reference
from voice_agent.dialogue.dispatch import Dispatcher
from voice_agent.dialogue.events import EventLog
from voice_agent.dialogue.hook_runner import HookRunner
from voice_agent.dialogue.model_call import ModelCaller
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.reply import SESSION_START, UserInput
from voice_agent.dialogue.responses import Response, Wording
from voice_agent.dialogue.speaking import Speaker
from voice_agent.dialogue.state import DialogueState
from voice_agent.dialogue.turn import Turn
from voice_agent.recall.protocol import Recalls

log = logging.getLogger(__name__)

PACKAGED_REPHRASED = frozenset(
    f"utter_{name}"
    for name in (
        "completed", "cannot_help", "hangup_goodbye", "resume_offer", "resume_declined", "skill_cancelled",
        "confirm_denied", "satisfaction_thanks", "satisfaction_sorry",
    )
)  # fmt: skip
"""Packaged wording of skills that may be reworded when the project has a rephraser."""


@dataclass(slots=True)
class Core:
    """One conversation's engine room.

    Attributes:
        channel: Name of the channel the caller came in by; chooses response variants.
        voice: The caller hears the replies.
        transfers: Where callers can be put through to.
        speculations: How often the model may begin before an utterance is certain.
        recalls: Memory beyond the prompt.
        user: What the turn that runs was begun with, as hooks left it; None between turns.
        turn: The turn that runs.
    """

    project: Project
    agent: AgentFile
    state: DialogueState
    events: EventLog
    dispatcher: Dispatcher
    hooks: HookRunner
    models: ModelCaller
    speaker: Speaker
    channel: str
    voice: bool
    transfers: Mapping[str, TransferOptions] = field(default_factory=dict)
    speculations: int = 0
    recalls: Recalls | None = None
    user: UserInput | None = None
    turn: Turn | None = None

    def wording(
        self, name: str, skill: str | None = None, values: Mapping[str, Any] | None = None, nth: int = 0
    ) -> Wording | None:
        """Return the response ``name`` as it reads now; None, and a warning, when nothing of it fits.

        Args:
            skill: The skill that says it; its own responses and fields come first.
            values: Placeholders that the engine fills by itself.
            nth: Which of several wordings that fit, round and round.
        """
        response = self.project.responses.find(name, skill)
        variant = None if response is None else response.choose(self.state.memory.read, self.channel, nth)
        if response is None or variant is None:
            log.warning("response %s has no wording that fits", name)
            return None
        text, filled = variant.template.fill(self._lookup(skill, values or {}))
        rephrase = variant.rephrase or self._packaged_and_reworded(response)
        return Wording(
            name,
            text,
            variant.interruptible,
            rephrase,
            filled,
            template=variant.template.source,
            while_uninterruptible=variant.while_uninterruptible,
            record=variant.record,
        )

    def _packaged_and_reworded(self, response: Response) -> bool:
        # Alarms and service lines must come at once and as they are.
        return (
            self.project.endpoints.rephrase
            and response.name in PACKAGED_REPHRASED
            and self.project.responses.packaged.get(response.name) is response
        )

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

    def say(
        self,
        turn: Turn,
        name: str,
        skill: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        about: str = "",
        delivery: Mapping[str, Any] | None = None,
    ) -> None:
        """Say a configured response in this turn.

        Args:
            about: A model may word it anew so that it names this; for wording too general to stand alone.
            delivery: What a step says of it, before what the response says.
        """
        wording = self.wording(name, skill, values)
        if wording is not None:
            wording = replace(wording, **(delivery or {}))
            turn.reply.deliver(replace(wording, rephrase=True, about=about) if about else wording)

    def make_good(self, turn: Turn) -> None:
        """Say first what the turn before was cancelled before it could say of what it had done."""
        if turn.user == SESSION_START:
            # A greeting comes first; what is owed goes with the answer to the caller's first words.
            return
        owed, self.state.owed = self.state.owed, []
        for wording in owed:
            turn.reply.deliver(wording)
            turn.made_good.append(wording.name)

    def say_unreachable(self, turn: Turn, skill: str | None) -> None:
        """Say, once in a turn, that what is needed cannot be reached at present."""
        if not turn.said_unreachable:
            turn.said_unreachable = True
            self.say(turn, "utter_tool_unavailable", skill)
