"""How long has nothing happened? Runs only while the call listens, nothing is pending and playout is drained.

::

    agent   ▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇
    caller  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
                 └─ timeout_s ────┘ /silence
"""

from __future__ import annotations


class IdleClock:
    """Tells once per stretch of silence that it has lasted ``timeout_s``; 0 never tells."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._since: float | None = None

    def update(self, now: float, idle: bool) -> bool:
        """Take the state of the call at ``now``; return whether the silence has just become too long."""
        if not idle or self._timeout_s <= 0:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        if now - self._since < self._timeout_s:
            return False
        self._since = None
        return True
