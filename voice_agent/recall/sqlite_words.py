"""Passages of the embedded index by their words (FTS5, Okapi BM25)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from voice_agent.recall.entries import Kind
from voice_agent.recall.words import quoted

COMMON = 500
"""A word in more passages than this is not searched for."""
RANKED = 200
"""Passages ranked by words before those that may not be seen are taken out."""
_RANK = "bm25(2.0, 1.0)"
"""Okapi BM25; what stands in a title counts twice."""


def by_words(
    connection: sqlite3.Connection, words: str, documents: bool, owners: Sequence[str], limit: int
) -> list[int]:
    """Return the keys of passages that share telling words with a question, best first."""
    query = " OR ".join(_telling(connection, quoted(words)))
    if not query:
        return []
    marks = ",".join("?" * len(owners))
    # Ranked before anything is joined: where a question's words are common, thousands of passages share one.
    rows = connection.execute(
        "SELECT p.key FROM (SELECT rowid AS key, rank AS badness FROM words WHERE words MATCH ? AND rank MATCH ?"
        " ORDER BY rank LIMIT ?) AS near JOIN passages p ON p.key = near.key JOIN sources s ON s.key = p.source"
        f" WHERE (? AND s.kind = ?) OR (s.kind = ? AND s.owner IN ({marks})) ORDER BY badness LIMIT ?",
        (query, _RANK, RANKED, documents, Kind.DOCUMENT, Kind.REFERENCE, *owners, limit),
    )
    return [row[0] for row in rows]


def _telling(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """Leave out words that stand in very many passages: they tell nothing apart, and ranking by them takes long."""
    probe = f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {COMMON + 1})"
    return [word for word in words if connection.execute(probe, (word,)).fetchone()[0] <= COMMON]
