"""Keys of the telephone: digits are gathered and delivered as one utterance.

::

    keys   1  2  3  4  #           "1234" at once
    keys   1  2 ─── interdigit ──▶ "12" after the pause
"""

from __future__ import annotations

from voice_agent.digits import KEYS

INTERDIGIT_TIMEOUT_S = 3.0
MAX_DIGITS = 32


class KeyBuffer:
    """Gathers keys until ``#``, a pause, or the length that no number exceeds."""

    def __init__(self, interdigit_timeout_s: float = INTERDIGIT_TIMEOUT_S) -> None:
        self._timeout_s = interdigit_timeout_s
        self._digits = ""
        self._last = 0.0

    def __bool__(self) -> bool:
        return bool(self._digits)

    def press(self, key: str, now: float) -> str | None:
        """Take one key; return the whole entry if this key closed it. Unknown keys are ignored."""
        key = key.upper()
        if len(key) != 1 or key not in KEYS:
            return None
        self._last = now
        if key == "#":
            return self._take() or "#"
        self._digits += key
        return self._take() if len(self._digits) >= MAX_DIGITS else None

    def expired(self, now: float) -> str | None:
        """Return the entry if no key followed in time, once."""
        return self._take() if self._digits and now - self._last >= self._timeout_s else None

    def _take(self) -> str:
        digits, self._digits = self._digits, ""
        return digits
