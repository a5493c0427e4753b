"""One ranking out of two: by meaning and by words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

DAMPING = 10
"""How much the first places of a ranking count above the later ones; small for lists of some ten items.

Reciprocal rank fusion: Cormack, Clarke and Büttcher 2009, which uses 60 for lists of a thousand."""

Key = TypeVar("Key", bound=Hashable)


def fused(*rankings: Sequence[Key], weights: Sequence[float] | None = None) -> list[Key]:
    """Return every key of the rankings, best first. What stands high in several comes before what is in one."""
    scores: dict[Key, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for place, key in enumerate(ranking):
            scores[key] = scores.get(key, 0.0) + weight / (DAMPING + place)
    return sorted(scores, key=lambda key: -scores[key])
