"""Numbers of a known length: "six-digit account number". Said in parts, they are put together.

asked    "What is your six digit account number?"
caller   "Four two seven."            half of it
asked    "I have 4 2 7. What comes next?"
caller   "Nine one three."            427913
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from voice_agent.llm.embedded import phrases
from voice_agent.llm.embedded.numbers import parse_digits
from voice_agent.llm.protocol import FieldCard

_COUNT_NAMES = "three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_COUNTS = {word: count for count, word in enumerate(_COUNT_NAMES.split(), 3)}
_LENGTH = re.compile(rf"\b(\d{{1,2}}|{'|'.join(_COUNTS)})[- ]digits?\b", re.IGNORECASE)
LEAST_PART = 2


def length_of(card: FieldCard) -> int | None:
    """Return how many digits ``card`` must have, if its description says so."""
    found = _LENGTH.search(card.description)
    return None if found is None else _COUNTS.get(found[1].lower()) or int(found[1])


def counted(text: str, length: int) -> str | None:
    """Return the ``length`` digits said in ``text``, or None.

    A recogniser groups digits as it likes ("42.7913", "427 9 1 3") and may echo a number it has
    just written ("1, 2, 3, 4, 5, 6, 1, 2, 3").
    """
    said = parse_digits(text) or ""
    if len(said) == length:
        return said
    written = re.sub(r"\D", "", text)
    if len(written) == length and not re.search(r"[a-z]", text, re.IGNORECASE):
        return written
    echo = said[length:]
    return said[:length] if echo and said[:length].startswith(echo) else None


def part(text: str, length: int) -> str | None:
    """Return the digits in ``text`` when they can be the beginning of a number of ``length`` digits."""
    said = parse_digits(text) or ""
    return said if LEAST_PART <= len(said) < length else None


def parts_before(exchanges: Sequence[tuple[str, str]]) -> str:
    """Return the digits given so far: those in the replies before each "What comes next?" at the end.

    Args:
        exchanges: What was said to the caller, each with their reply; the last reply is the new one.
    """
    replies = [reply for _, reply in reversed(exchanges)][1:]
    asked_on = list(takewhile(lambda pair: pair[0].endswith(phrases.WHAT_NEXT), reversed(exchanges)))
    return "".join(reversed([parse_digits(reply) or "" for reply in replies[: len(asked_on)]]))
