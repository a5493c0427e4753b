"""Reference texts of a project: read, cut into passages, and searched by words where nothing better is at hand.

Where `voice_agent.recall` has an index, the same passages are in it and are found by meaning too.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from voice_agent.diagnostics import Problem
from voice_agent.recall.chunks import passages, title_of
from voice_agent.recall.entries import Passage as Passage
from voice_agent.recall.entries import ScoredPassage as ScoredPassage
from voice_agent.recall.words import WordIndex as WordIndex
from voice_agent.text_file import read_text


class KnowledgeIndex(Protocol):
    """Search over passages. Implementations may rank by words, by embeddings, or by both."""

    def __len__(self) -> int: ...

    def search(self, query: str, *, limit: int = 3) -> Coroutine[Any, Any, Sequence[ScoredPassage]]:
        """Return at most ``limit`` passages, best first; none if nothing fits."""
        ...


def read_references(folder: Path, root: Path, problems: list[Problem]) -> list[Passage]:
    """Read every markdown file below ``folder``; files that are no UTF-8 are read as far as they go.

    A file that cannot be read becomes a problem; nothing raises.
    """
    found: list[Passage] = []
    for path in sorted(folder.rglob("*.md")):
        text = None if path.is_dir() else read_text(path, problems, errors="replace")
        if text is None:
            continue
        found += passages(text, str(path.relative_to(root)), title_of(path.stem))
    return found
