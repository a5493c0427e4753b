"""What the ears tell whoever decides what the caller's voice means."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from voice_agent.call.utterance import Utterance


class Lost(Enum):
    """Why an utterance made no turn."""

    TOO_SHORT = "too_short"
    NO_WORDS = "no_words"
    FAILED = "failed"


class Listener(Protocol):
    """Whoever decides what the caller's voice means."""

    def caller_voice(self, utterance: Utterance) -> None:
        """A frame of voice."""
        ...

    def caller_silence(self, utterance: Utterance) -> None:
        """A frame of silence within an utterance, after its pause."""
        ...

    def caller_words(self, utterance: Utterance, text: str) -> None:
        """Words so far, a partial or the whole."""
        ...

    def caller_finished(self, utterance: Utterance, text: str) -> None:
        """The utterance is over and this is what it said."""
        ...

    def caller_lost(self, utterance: Utterance, why: Lost) -> None:
        """The utterance is over and said nothing that can be used."""
        ...

    def speaks_over_agent(self) -> bool:
        """Whether an utterance that begins now begins while a turn exists."""
        ...
