"""Keys of a telephone that the agent presses: what may be pressed, and what can come of it.

The dialogue names the keys, the call sees to the right moment, the wire presses them and answers with a typed reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

KEYS = "0123456789*#ABCD"
"""The sixteen keys of DTMF (ITU-T Q.23)."""
PAUSE = "w"
"""Stands for `PAUSE_S` between two keys, as in the dial strings of telephony."""
PAUSE_S = 0.5
MAX_DIGITS = 32
"""Keys and pauses that are pressed at once: more than an account or card number with its terminator has."""
KEY_S, GAP_S = 0.1, 0.1
"""How long a key sounds, and the silence behind it: receivers need 40 ms of each (ITU-T Q.24), old ones more."""


class BadDigits(ValueError):
    """These are no keys. Says what would be right, and repeats none of them."""

    def __init__(self) -> None:
        super().__init__(f"Digits are 1 to {MAX_DIGITS} of 0-9, *, #, A-D, and {PAUSE} for a pause of {PAUSE_S} s.")


def read_digits(text: str) -> str:
    """Return the keys and pauses in ``text`` as they are pressed; blanks and hyphens that group them do not count.

    Raises:
        BadDigits: There are none, too many, or something else among them.
    """
    found = "".join(PAUSE if one in "wW" else one.upper() for one in text if one not in " -")
    if not 0 < len(found) <= MAX_DIGITS or any(one != PAUSE and one not in KEYS for one in found):
        raise BadDigits
    if not found.strip(PAUSE):
        raise BadDigits
    return found


def seconds_of(digits: str) -> float:
    """Return how long it takes to press them one after the other."""
    return sum(PAUSE_S if one == PAUSE else KEY_S + GAP_S for one in digits)


class DigitsReason(Enum):
    """What came of pressing keys."""

    SENT = "sent"
    """All were pressed. Whether the other side took them, no wire can know."""
    BAD_DIGITS = "bad_digits"
    """They are none (`read_digits`); nothing was pressed."""
    NOT_SUPPORTED = "not_supported"
    """Keys cannot be pressed on this wire."""
    TRUNK_ERROR = "trunk_error"
    """The line, the provider or the wire failed; some may have been pressed."""
    TIMEOUT = "timeout"
    """It was not known in time whether they were."""


@dataclass(frozen=True, slots=True)
class DigitsResult:
    """What came of it. ``detail`` is for the operator, such as a status code; no key."""

    reason: DigitsReason
    detail: str = ""

    @property
    def sent(self) -> bool:
        return self.reason is DigitsReason.SENT


DIGITS_SENT = DigitsResult(DigitsReason.SENT)
NO_DIGITS = DigitsResult(DigitsReason.NOT_SUPPORTED)
