"""The words of a text that tell what it is about, and ranking by them."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Sequence

from voice_agent.recall.entries import Passage, ScoredPassage

MAX_QUERY_CHARS = 2000
MAX_QUERY_WORDS = 16

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_STOP = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be by can do does for from have how i in is it me my of on or our please that the there
        this to us was we what when where which who will with would you your tell know about""",
    )
)


def words(text: str) -> list[str]:
    """Return the content words of ``text``, reduced to a crude stem ("opened", "opening" → "open")."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


class WordIndex:
    """Okapi BM25 over passages (Robertson and Zaragoza 2009; k1 = 1.2, b = 0.75). Titles count twice."""

    K1, B = 1.2, 0.75

    def __init__(self, found: Sequence[Passage]) -> None:
        self._passages = tuple(found)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        lengths: list[int] = []
        for number, passage in enumerate(self._passages):
            counts = Counter(words(f"{passage.title} {passage.title} {passage.text}"))
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._postings.setdefault(word, []).append((number, count))
        mean = max(sum(lengths) / max(len(lengths), 1), 1e-9)
        self._norms = [self.K1 * (1 - self.B + self.B * length / mean) for length in lengths]

    def __len__(self) -> int:
        return len(self._passages)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All of them, in the order of the files."""
        return self._passages

    async def search(self, query: str, *, limit: int = 3) -> Sequence[ScoredPassage]:
        # Looks only at passages that share a word with the question: it runs on the event loop.
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(query[:MAX_QUERY_CHARS])):
            spread = self._postings.get(word, ())
            rarity = math.log(1 + (len(self._passages) - len(spread) + 0.5) / (len(spread) + 0.5))
            for number, count in spread:
                score = rarity * count * (self.K1 + 1) / (count + self._norms[number])
                scores[number] = scores.get(number, 0.0) + score
        best = heapq.nsmallest(limit, scores.items(), key=lambda found: (-found[1], found[0]))
        return [ScoredPassage(self._passages[number], score) for number, score in best]


def quoted(text: str) -> list[str]:
    """Return the content words of ``text`` as terms of a full-text query (SQLite FTS5), each once.

    In quotes: nothing that a caller says is read as an operator.
    """
    found = dict.fromkeys(word for word in _WORD.findall(text[:MAX_QUERY_CHARS].lower()) if word not in _STOP)
    return [f'"{word}"' for word in list(found)[:MAX_QUERY_WORDS]]
