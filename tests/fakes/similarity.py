"""A similarity of sentences without a model: the share of words they have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence


def shared_words(sentence: str, others: Sequence[str]) -> list[float]:
    """Return, for each of ``others``, shared words over all words (Jaccard): 0 to 1."""
    own = set(re.findall(r"[a-z0-9]+", sentence.lower()))
    values = []
    for other in others:
        words = set(re.findall(r"[a-z0-9]+", other.lower()))
        values.append(len(own & words) / max(len(own | words), 1))
    return values
