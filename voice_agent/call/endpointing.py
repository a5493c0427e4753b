"""When has the caller finished? Silence, weighed by how the words so far end.

::

    voice  ▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
           pause_ms ┤    │      │            │
       min_endpoint ─────┘      │            │   "What is my balance?"    a complete sentence
       between      ────────────┘            │   "my balance"             cannot say (geometric mean)
       max_endpoint ─────────────────────────┘   "My number is 427,"      promises more

"""

from __future__ import annotations

import math
import re

from voice_agent.call.vocabulary import ENGLISH, Vocabulary, words
from voice_agent.config import TurnTaking

_OPEN_MARKS = (",", "-", "–", "—", "…", "...", ":", ";")
_DIGITS_AT_END = re.compile(r"(?:\d[\s\-–.,]*){3,}$")


class Endpointing:
    """Chooses the silence that ends an utterance from its transcript so far."""

    def __init__(self, options: TurnTaking, vocabulary: Vocabulary = ENGLISH) -> None:
        self._shortest = options.min_endpoint_ms
        self._longest = max(options.min_endpoint_ms, options.max_endpoint_ms)
        self._middle = round(math.sqrt(self._shortest * self._longest))
        self._vocabulary = vocabulary

    def required_silence_ms(self, text: str | None) -> int:
        """Return the silence after which the utterance is over; the longest while nothing is known of it."""
        if text is None or self._promises_more(text):
            return self._longest
        if text.rstrip().endswith((".", "!", "?", "。", "！", "？")):
            return self._shortest
        return self._middle

    def _promises_more(self, text: str) -> bool:
        stripped = text.rstrip()
        if stripped.endswith(_OPEN_MARKS) or _DIGITS_AT_END.search(stripped):
            return True
        said = words(stripped)
        if not said or stripped.endswith("?"):
            return False
        if said[-1] in self._vocabulary.unfinished and len(said) > 1:
            return True
        return any(said[-n:] in self._vocabulary.openings for n in (2, 3))
