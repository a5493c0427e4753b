"""What a hook may know of the moment at which it is called: read only, but for `memory` where it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from voice_agent.dialogue.memory import MemoryHandle
from voice_agent.recall.entries import Passage


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """Something that was said before this turn. ``role``: ``caller`` or ``agent``; ``text``: as it was heard."""

    role: str
    text: str


def _nothing() -> tuple[HistoryLine, ...]:
    return ()


@dataclass(frozen=True)
class HookContext:
    """Where a hook is called.

    Attributes:
        memory: Reads by bare field name. A modify hook may write, the active skill's fields and the
            project's, until it has ended; an observing one and one of a plugin may only read.
        utterance: What the caller said in this turn; empty where the turn is the service's own, such as a greeting.
        input_kind: How it came: ``speech``, ``text`` or ``dtmf``; empty with the utterance.
        skill: Id of the skill that is engaged; empty while none is.
        recalled: What was recalled for this turn, the best first; empty until it is there, and where nothing is.
        settings: Those of the plugin that the hook comes from, as its model gives them; None without a model.
    """

    conversation_id: str
    turn_id: str
    channel: str
    is_voice: bool
    memory: MemoryHandle
    utterance: str = ""
    input_kind: str = ""
    skill: str = ""
    recalled: tuple[Passage, ...] = ()
    settings: Any = None
    earlier: Callable[[], tuple[HistoryLine, ...]] = field(default=_nothing, repr=False, compare=False)

    @property
    def history(self) -> tuple[HistoryLine, ...]:
        """What was said in this session before this turn, oldest first; put together each time it is asked for."""
        return self.earlier()
