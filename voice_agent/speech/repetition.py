"""Finds a recogniser caught in a loop ("Yes. Yes. Yes. Yes. …").

A run that repeats with a period of p words counts as a loop from this many occurrences on; shorter
runs are things that people say ("no no no", "bye bye")::

    p = 1      4 times      yes yes yes yes
    p = 2, 3   3 times      thank you thank you thank you
    p ≥ 4      2 times      please hold the line please hold the line
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

MAX_WORDS_PER_SECOND = 7.0
"""No caller speaks faster: fast conversation has 4 to 5 words a second, the fastest tested clip 5.2."""
GRACE_WORDS = 3
"""Words beyond the rate that a very short clip may have: its edges are rounded."""


def _times_allowed(period: int) -> int:
    return 3 if period == 1 else 2 if period <= 3 else 1


def words_of(text: str) -> list[str]:
    """Return the words of ``text`` in lower case, without punctuation."""
    return [match.casefold() for match in _WORD.findall(text)]


def find_loop(words: list[str]) -> tuple[int, int] | None:
    """Return ``(start, period)`` of the first loop in ``words``, or None.

    The run ``words[start:]`` repeats its first ``period`` words too often, counting whole
    occurrences. The shortest period wins, so "yes" five times has period 1.
    """
    for period in range(1, len(words) // 2 + 1):
        needed = period * _times_allowed(period)
        run = 0
        for index in range(period, len(words)):
            run = run + 1 if words[index] == words[index - period] else 0
            if run >= needed:
                return index + 1 - run - period, period
    return None


def is_looping(text: str) -> bool:
    """Whether ``text`` repeats itself as a caught decoder does and a caller hardly."""
    return find_loop(words_of(text)) is not None


def is_too_fast(text: str, seconds: float) -> bool:
    """Whether ``text`` has more words than anyone can say in ``seconds``."""
    return len(words_of(text)) > GRACE_WORDS + MAX_WORDS_PER_SECOND * seconds


def collapse(text: str) -> str:
    """Return ``text`` up to the end of the first occurrence of its loop; unchanged without one."""
    loop = find_loop(words_of(text))
    if loop is None:
        return text
    start, period = loop
    kept = list(_WORD.finditer(text))[start + period - 1]
    rest = text[kept.end() :]
    return text[: kept.end()] + (rest[0] if rest[:1] in {".", "!", "?"} else "")
