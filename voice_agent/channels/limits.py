"""Bounds on what a caller may send. Pure: time comes in as seconds of any one monotonic clock."""

from __future__ import annotations


class TokenBucket:
    """Allows ``burst`` things at once and ``per_s`` on average.

    Seconds of audio are things too: a bucket of audio allows ``per_s`` seconds each second.
    """

    __slots__ = ("_at", "_burst", "_level", "_per_s")

    def __init__(self, burst: float, per_s: float, now: float) -> None:
        self._burst, self._per_s = burst, per_s
        self._level, self._at = burst, now

    def level(self, now: float) -> float:
        """Return what may be taken now."""
        level = self._level + (now - self._at) * self._per_s
        self._level = level if level < self._burst else self._burst
        self._at = now
        return self._level

    def take(self, amount: float, now: float) -> bool:
        """Take ``amount`` if all of it is there."""
        if self.level(now) < amount:
            return False
        self._level -= amount
        return True

    def wait_s(self, amount: float, now: float) -> float:
        """Return how long until ``amount`` (at most ``burst``) can be taken."""
        return max(0.0, (amount - self.level(now)) / self._per_s)
