"""Is this a whole answer to what was asked? Judged from the words alone, for whoever decides when to stop listening."""

from __future__ import annotations

import re
from enum import Enum, auto

from voice_agent.call.spoken_digits import digit_runs
from voice_agent.call.vocabulary import ENGLISH, Vocabulary, word_set, words
from voice_agent.dialogue.reply import ExpectedAnswer

OPEN_GROUP = 3
"""Digits in a row that are taken for a part of a longer number when nothing is known of its length."""
_MONTHS = word_set(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
_DAYS = word_set("today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday weekend")
_ORDINALS = word_set(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth thirtieth"
)
_DAY_OF_MONTH = re.compile(r"\d{1,2}(?:st|nd|rd|th)?")
_NUMERIC_DATE = re.compile(r"\b\d{1,4}[/.\-]\d{1,2}[/.\-]\d{1,4}\b")


class Wholeness(Enum):
    """What is known of an answer."""

    WHOLE = auto()
    OPEN = auto()
    """More must come: a group of digits that is too short, a month without its day."""
    UNKNOWN = auto()


def wholeness(text: str, expected: ExpectedAnswer | None, vocabulary: Vocabulary = ENGLISH) -> Wholeness:
    """Judge ``text`` as an answer to ``expected``; without one, only digits say something."""
    runs = digit_runs(text)
    match expected.kind if expected is not None else None:
        case "digits":
            return _digits(runs.longest, runs.last, expected.length if expected is not None else None)
        case "number" if runs.longest:
            return Wholeness.WHOLE
        case "date":
            return _date(text)
        case "yes_no" if vocabulary.has_yes_or_no(text):
            return Wholeness.WHOLE
        case "choice" if expected is not None and any(_names(text, choice) for choice in expected.choices):
            return Wholeness.WHOLE
    return Wholeness.OPEN if runs.last >= OPEN_GROUP else Wholeness.UNKNOWN


def _digits(longest: int, last: int, length: int | None) -> Wholeness:
    if length is not None and longest >= length:
        return Wholeness.WHOLE
    return Wholeness.OPEN if last else Wholeness.UNKNOWN


def _date(text: str) -> Wholeness:
    said = words(text)
    if _NUMERIC_DATE.search(text) or _DAYS & set(said):
        return Wholeness.WHOLE
    month = bool(_MONTHS & set(said))
    day = any(word in _ORDINALS or _DAY_OF_MONTH.fullmatch(word) for word in said) or digit_runs(text).longest > 0
    if month and day:
        return Wholeness.WHOLE
    return Wholeness.OPEN if month or day else Wholeness.UNKNOWN


def _names(text: str, choice: str) -> bool:
    said, wanted = words(text), words(choice)
    return bool(wanted) and any(said[at : at + len(wanted)] == wanted for at in range(len(said)))
