"""When has the caller finished? Silence, weighed by how the words so far end and by what was asked.

::

    voice  ▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
           pause_ms ┤    │      │            │
       min_endpoint ─────┘      │            │   "What is my balance?"    a complete sentence
       between      ────────────┘            │   "my balance"             cannot say (geometric mean)
       max_endpoint ─────────────────────────┘   "My number is 427,"      promises more

A whole answer to the question that is open ends soon, however it is punctuated: six digits where six were asked for,
a yes or a no, one of the choices, a date. A group of digits that is no whole answer promises more.
"""

from __future__ import annotations

import math

from voice_agent.call.answers import Wholeness, wholeness
from voice_agent.call.vocabulary import ENGLISH, Vocabulary, words
from voice_agent.config import TurnTaking
from voice_agent.dialogue.reply import ExpectedAnswer

_OPEN_MARKS = (",", "-", "–", "—", "…", "...", ":", ";")


class Endpointing:
    """Chooses the silence that ends an utterance from its transcript so far."""

    def __init__(self, options: TurnTaking, vocabulary: Vocabulary = ENGLISH) -> None:
        self._shortest = options.min_endpoint_ms
        self._longest = max(options.min_endpoint_ms, options.max_endpoint_ms)
        self._middle = round(math.sqrt(self._shortest * self._longest))
        self._vocabulary = vocabulary

    def required_silence_ms(self, text: str | None, expected: ExpectedAnswer | None = None) -> int:
        """Return the silence after which the utterance is over; the longest while nothing is known of it.

        Args:
            expected: What would answer the question that is open.
        """
        if text is None:
            return self._longest
        answer = wholeness(text, expected, self._vocabulary)
        if answer is Wholeness.OPEN:
            return self._longest
        if answer is Wholeness.WHOLE and (expected is None or not self._trails_off(text, expected)):
            return self._shortest
        if self._promises_more(text):
            return self._longest
        if text.rstrip().endswith((".", "!", "?", "。", "！", "？")):
            return self._shortest
        return self._middle

    def _trails_off(self, text: str, expected: ExpectedAnswer) -> bool:
        # The full count of digits is the full count; "yes, but" is not the whole of what will be said.
        return expected.kind != "digits" and self._promises_more(text)

    def _promises_more(self, text: str) -> bool:
        stripped = text.rstrip()
        if stripped.endswith(_OPEN_MARKS):
            return True
        said = words(stripped)
        if not said or stripped.endswith("?"):
            return False
        if said[-1] in self._vocabulary.unfinished and len(said) > 1:
            return True
        return any(said[-n:] in self._vocabulary.openings for n in (2, 3))
