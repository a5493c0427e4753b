"""How long to wait before a lost server is tried again.

tries   x    x        x                x
waits    ~0.5  ~1        ~2        ~4   …  30 s, each shortened at random, so that many do not come at once
"""

from __future__ import annotations

import random

FIRST_S = 0.5
LONGEST_S = 30.0
STEADY_S = 20.0
"""A connection that held for this long begins anew; one that is lost sooner goes on where it was."""


class Backoff:
    """The waits of one server, in seconds."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()
        self._failures = 0

    def lost(self, held_s: float) -> float:
        """Return how long to wait after a connection that held for ``held_s``; 0 if it never came about."""
        if held_s >= STEADY_S:
            self._failures = 0
        longest = min(LONGEST_S, FIRST_S * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return longest * self._chance.uniform(0.5, 1.0)
