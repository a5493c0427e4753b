"""Which tools and skills lie nearest to what the caller said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.recall.index import Vectors

MAX_PROJECTS = 4
"""Versions of a project whose tools and skills are kept as vectors."""
MAX_LINE_CHARS = 2000


class Procedures:
    """Ranks them by their lines (names, descriptions, examples), whose vectors are made once.

    Args:
        embed: Makes vectors of unit length.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Awaitable[Vectors]]) -> None:
        self._embed = embed
        self._vectors: dict[tuple[tuple[str, str], ...], Vectors] = {}

    async def fitting(self, query: str, procedures: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
        """Return the names, best first: each is as near as its nearest line. None where there is nothing to rank.

        Raises:
            EmbeddingFailed, IndexUnavailable, RemediableError: No vectors can be made.
        """
        lines = tuple((name, line[:MAX_LINE_CHARS]) for name, of in procedures.items() for line in of if line.strip())
        if not query.strip() or not lines:
            return None
        if lines not in self._vectors:
            vectors = await self._embed([line for _, line in lines])
            while len(self._vectors) >= MAX_PROJECTS:
                del self._vectors[next(iter(self._vectors))]
            self._vectors[lines] = vectors
        kept = self._vectors[lines]
        (vector,) = await self._embed([query])
        best: dict[str, float] = {}
        for (name, _), score in zip(lines, kept @ vector, strict=True):
            best[name] = max(best.get(name, -1.0), float(score))
        return sorted(best, key=lambda name: -best[name])
