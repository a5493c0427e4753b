"""Digits as people say and recognisers write them: "four two seven", "427", "4-2-7", "double five", "twenty one"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from voice_agent.call.vocabulary import word_set, words

_UNITS = word_set("zero oh o nought one two three four five six seven eight nine")
_SECOND_DIGITS = _UNITS - {"oh", "o", "nought", "zero"}
_TEENS = word_set("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
_TENS = word_set("twenty thirty forty fifty sixty seventy eighty ninety")
_REPEATS: Mapping[str, int] = {"double": 2, "triple": 3}
_CLOCK_TIME = re.compile(r"\b\d{1,2}:\d{2}\b")
_FILLERS = word_set("um uh er erm and then")


@dataclass(frozen=True, slots=True)
class DigitRuns:
    """The stretches of digits in a text.

    Attributes:
        longest: Digits in the longest one.
        last: Digits in the one that ends the text; 0 when something else follows it.
    """

    longest: int = 0
    last: int = 0


def digit_runs(text: str) -> DigitRuns:
    """Count the digits of each stretch; "um" between two groups does not part them."""
    longest = run = 0
    repeat, tens = 1, False
    for word in words(_CLOCK_TIME.sub(" time ", text)):
        count = _digits(word)
        if word in _REPEATS:
            repeat, tens = _REPEATS[word], False
        elif count:
            # "twenty one" is two digits, not three.
            run += count * repeat - (tens and word in _SECOND_DIGITS)
            repeat, tens = 1, word in _TENS
        elif word not in _FILLERS:
            longest, run, repeat, tens = max(longest, run), 0, 1, False
    return DigitRuns(max(longest, run), run)


def _digits(word: str) -> int:
    if word.isdecimal():
        return len(word)
    if word in _TENS or word in _TEENS:
        return 2
    return 1 if word in _UNITS else 0
