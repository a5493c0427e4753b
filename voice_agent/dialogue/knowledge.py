"""Searching reference texts: passages cut at headings, ranked by the words they share with a question."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from voice_agent.diagnostics import Problem
from voice_agent.text_file import read_text

MAX_PASSAGE_CHARS = 1200
MAX_QUERY_CHARS = 2000

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
    for paragraph in _paragraphs(text):
        if piece and len(piece) + len(paragraph) > MAX_PASSAGE_CHARS:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}" if piece else paragraph
    if piece.strip():
        yield piece


def _paragraphs(text: str) -> Iterable[str]:
    """Return the paragraphs, those too long for a passage cut at spaces, or anywhere if there are none."""
    for paragraph in re.split(r"\n\s*\n", text):
        rest = paragraph
        while len(rest) > MAX_PASSAGE_CHARS:
            at = rest.rfind(" ", 1, MAX_PASSAGE_CHARS + 1)
            at = at if at > 0 else MAX_PASSAGE_CHARS
            yield rest[:at]
            rest = rest[at:].lstrip()
        yield rest


def read_references(folder: Path, root: Path, problems: list[Problem]) -> list[Passage]:
    """Read every markdown file below ``folder``; files that are no UTF-8 are read as far as they go.

    A file that cannot be read becomes a problem; nothing raises.
    """
    found: list[Passage] = []
    for path in sorted(folder.rglob("*.md")):
        text = None if path.is_dir() else read_text(path, problems, errors="replace")
        if text is None:
            continue
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
