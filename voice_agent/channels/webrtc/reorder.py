"""Puts RTP packets back in order. Pure.

A packet in order passes at once, so that no delay is added on a good network; behind a gap packets wait
until the missing one comes, or until so many wait that it counts as lost::

    arrives    1  2  4  5  3       7  8  9
    passes     1  2        3 4 5            7 8 9     6 is lost once three later ones are there
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

DEPTH = 3
"""Packets that may wait for a missing one: 60 ms."""
JUMP = 500
"""A sequence number this far from the last one is another stream, not a loss."""
_SPAN = 1 << 16


class Reorder(Generic[T]):
    """Attributes: ``lost``: packets given up; ``late``: packets that came twice or too late."""

    __slots__ = ("_next", "_waiting", "late", "lost")

    def __init__(self) -> None:
        self._next: int | None = None
        self._waiting: dict[int, T] = {}
        self.lost = self.late = 0

    def push(self, sequence: int, item: T) -> list[T]:
        """Take the packet with this 16-bit sequence number; return what is next, in order, possibly nothing."""
        if self._next is None:
            self._next = sequence
        ahead = (sequence - self._next) % _SPAN
        if ahead >= _SPAN - JUMP:
            self.late += 1
            return []
        if ahead >= JUMP:
            # The sender began anew: what waits belongs to the stream before.
            self._waiting.clear()
            self._next = sequence
            ahead = 0
        if ahead and sequence in self._waiting:
            self.late += 1
            return []
        if not ahead and not self._waiting:
            self._next = (sequence + 1) % _SPAN
            return [item]
        self._waiting[sequence] = item
        ready = self._take()
        while len(self._waiting) >= DEPTH:
            while self._next not in self._waiting:
                self.lost += 1
                self._next = (self._next + 1) % _SPAN
            ready += self._take()
        return ready

    def _take(self) -> list[T]:
        """Take what follows without a gap."""
        assert self._next is not None
        ready: list[T] = []
        while self._next in self._waiting:
            ready.append(self._waiting.pop(self._next))
            self._next = (self._next + 1) % _SPAN
        return ready
