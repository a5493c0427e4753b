"""Searching reference texts: passages cut at headings, ranked by the words they share with a question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

MAX_PASSAGE_CHARS = 1200

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_STOP = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be by can do does for from have how i in is it me my of on or our please that the there
        this to us was we what when where which who will with would you your tell know about""",
    )
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a reference text under one heading.

    Attributes:
        title: The headings above it, outermost first, joined with " - ".
        source: Path relative to the project.
    """

    title: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    passage: Passage
    score: float


class KnowledgeIndex(Protocol):
    """Search over passages. Implementations may rank by words, by embeddings, or by both."""

    def __len__(self) -> int: ...

    def search(self, query: str, *, limit: int = 3) -> Coroutine[Any, Any, Sequence[ScoredPassage]]:
        """Return at most ``limit`` passages, best first; none if nothing fits."""
        ...


def passages(text: str, source: str, fallback_title: str) -> list[Passage]:
    """Cut markdown into passages at headings, and long sections at blank lines."""
    found: list[Passage] = []
    headings: list[tuple[int, str]] = []
    lines: list[str] = []

    def flush() -> None:
        title = " - ".join(name for _, name in headings) or fallback_title
        for piece in _pieces("\n".join(lines).strip()):
            found.append(Passage(title, piece, source))
        lines.clear()

    for line in text.splitlines():
        heading = re.match(r"(#{1,6})\s+(.*?)\s*#*$", line)
        if heading is None:
            lines.append(line)
            continue
        flush()
        level = len(heading.group(1))
        headings = [(depth, name) for depth, name in headings if depth < level]
        headings.append((level, heading.group(2)))
    flush()
    return found


def _pieces(text: str) -> Iterable[str]:
    piece = ""
    for paragraph in re.split(r"\n\s*\n", text):
        if piece and len(piece) + len(paragraph) > MAX_PASSAGE_CHARS:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}" if piece else paragraph
    if piece.strip():
        yield piece


def read_references(folder: Path, root: Path) -> list[Passage]:
    """Read every markdown file below ``folder``; files that are no UTF-8 are read as far as they go."""
    found: list[Passage] = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        found += passages(text, str(path.relative_to(root)), path.stem.replace("_", " ").replace("-", " "))
    return found


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
        self._counts = [Counter(words(f"{p.title} {p.title} {p.text}")) for p in self._passages]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = (sum(self._lengths) / len(self._lengths)) if self._lengths else 1.0
        self._spread: Counter[str] = Counter(word for counts in self._counts for word in counts)

    def __len__(self) -> int:
        return len(self._passages)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All of them, in the order of the files."""
        return self._passages

    async def search(self, query: str, *, limit: int = 3) -> Sequence[ScoredPassage]:
        wanted = set(words(query[:2000]))
        scored = [ScoredPassage(p, self._score(i, wanted)) for i, p in enumerate(self._passages)]
        return sorted((s for s in scored if s.score > 0), key=lambda s: -s.score)[:limit]

    def _score(self, index: int, wanted: set[str]) -> float:
        counts, total = self._counts[index], 0.0
        norm = self.K1 * (1 - self.B + self.B * self._lengths[index] / max(self._mean, 1e-9))
        for word in wanted & counts.keys():
            spread = self._spread[word]
            rarity = math.log(1 + (len(self._passages) - spread + 0.5) / (spread + 0.5))
            total += rarity * counts[word] * (self.K1 + 1) / (counts[word] + norm)
        return total
