"""When has the caller finished? Silence, weighed by how the words so far end and by what was asked.

Two silences are told apart: the one after which the words are a turn (its work begins: model, tools, voice), and the
one before which an answer that a model words does not sound. What follows in between is joined to the turn::

    voice  ▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
           pause_ms ┤    │      │   │        │
       min_endpoint ─────┘      │   │        │   "What is my balance?"    sure: turn and answer
                         ├──────────┤            "I need a technician."   closed: the turn; its answer at reply_after_ms
       between      ────────────┘            │   "my balance"             bare (geometric mean)
       max_endpoint ─────────────────────────┘   "My number is 427,"      open: promises more

A recogniser ends nearly everything with a full stop, also what goes on after a comma, and no sound gives it away: hence
the second silence for statements. A whole answer to the question that is open is sure, however it is punctuated: six
digits where six were asked for, a yes or a no, one of the choices, a date. A group of digits that is no whole answer is
open.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum, auto

from voice_agent.call.answers import Wholeness, wholeness
from voice_agent.call.vocabulary import ENGLISH, Vocabulary, words
from voice_agent.config import TurnTaking
from voice_agent.dialogue.reply import ExpectedAnswer

_OPEN_MARKS = (",", "-", "–", "—", "…", "...", ":", ";")
_STOPS = (".", "!", "。", "！")
_QUESTIONS = ("?", "？")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
UNSURE_STOP = 0.55
"""Below this the recogniser doubts that a sentence ends where it put a full stop. On 300 spoken lines it doubts a
quarter of the false ends of thinking pauses and human recordings, and one true end in ten."""


class Ending(Enum):
    """How the words so far end."""

    SURE = auto()
    """A question, a whole answer, a courtesy: hardly anybody goes on."""
    CLOSED = auto()
    """A statement that may be the whole or the first half of a sentence."""
    DOUBTED = auto()
    """The same, and the recogniser itself is not sure that it ends."""
    BARE = auto()
    """Words without a mark at their end."""
    OPEN = auto()
    """More is promised."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Silences since the last voice, in ms.

    Attributes:
        turn_ms: After it the words are a turn.
        reply_ms: Before it an answer that a model words does not sound; never shorter than ``turn_ms``.
    """

    turn_ms: int
    reply_ms: int


class Endpointing:
    """Chooses the silence that ends an utterance from its transcript so far."""

    def __init__(self, options: TurnTaking, vocabulary: Vocabulary = ENGLISH) -> None:
        shortest, longest = options.min_endpoint_ms, max(options.min_endpoint_ms, options.max_endpoint_ms)
        middle = round(math.sqrt(shortest * longest))
        reply = options.reply_after_ms
        self._endpoints = {
            Ending.SURE: Endpoint(shortest, shortest),
            Ending.CLOSED: Endpoint(shortest, max(shortest, reply)),
            Ending.DOUBTED: Endpoint(middle, max(middle, round(math.sqrt(reply * longest)))),
            Ending.BARE: Endpoint(middle, max(middle, reply)),
            Ending.OPEN: Endpoint(longest, longest),
        }
        self._vocabulary = vocabulary

    def endpoint(
        self, text: str | None, expected: ExpectedAnswer | None = None, stop_probability: float | None = None
    ) -> Endpoint:
        """Return the silences after which the utterance is over; the longest while nothing is known of it.

        Args:
            expected: What would answer the question that is open.
            stop_probability: See `Transcript`.
        """
        if text is None:
            return self._endpoints[Ending.OPEN]
        return self._endpoints[ending(text, expected, stop_probability, self._vocabulary)]


def ending(
    text: str,
    expected: ExpectedAnswer | None = None,
    stop_probability: float | None = None,
    vocabulary: Vocabulary = ENGLISH,
) -> Ending:
    """Judge how ``text`` ends, as an answer to ``expected``."""
    answer = wholeness(text, expected, vocabulary)
    if answer is Wholeness.OPEN:
        return Ending.OPEN
    trails_off = _promises_more(text, vocabulary)
    # The full count of digits is the full count; "yes, but" is not the whole of what will be said.
    if answer is Wholeness.WHOLE and (not trails_off or (expected is not None and expected.kind == "digits")):
        return Ending.SURE
    if trails_off:
        return Ending.OPEN
    stripped = text.rstrip()
    if stripped.endswith(_QUESTIONS):
        return Ending.SURE
    if not stripped.endswith(_STOPS):
        return Ending.BARE
    if vocabulary.is_courtesy(stripped):
        return Ending.SURE
    return Ending.DOUBTED if stop_probability is not None and stop_probability < UNSURE_STOP else Ending.CLOSED


def _promises_more(text: str, vocabulary: Vocabulary) -> bool:
    stripped = text.rstrip()
    if stripped.endswith(_OPEN_MARKS):
        return True
    said = words(_SENTENCE_END.split(stripped)[-1])
    if not said:
        return False
    own = next((said[at:] for at, word in enumerate(said) if word not in vocabulary.lead_ins), said)
    if own in vocabulary.openings:
        # "Could you tell me?" is no question yet.
        return True
    if stripped.endswith(_QUESTIONS):
        return said[-1] in vocabulary.fillers
    if any(said[-n:] in vocabulary.announcements for n in (2, 3)):
        return True
    if own[0] in vocabulary.subordinators and said == words(stripped) and "," not in stripped:
        # "If it is not too late." has a main clause to come.
        return True
    if len(said) > 1 and said[-1] in vocabulary.unfinished:
        # "I know where it is." may end so, if the recogniser says that it ends.
        return not (stripped.endswith(_STOPS) and said[-1] in vocabulary.stranded)
    return False
