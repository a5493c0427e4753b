"""Vectors of the embedded index: as blobs (float32, unit length), and as one matrix to compare with."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from voice_agent.recall.entries import Kind
from voice_agent.recall.index import IndexUnavailable, OtherModel

if TYPE_CHECKING:
    from voice_agent.recall.index import Vector, Vectors

DAMAGED = "the index of recall is damaged: delete its file and learn anew"


class Matrix:
    """Vectors of texts as they were at one change of the file."""

    def __init__(self, connection: sqlite3.Connection, changes: str) -> None:
        rows = connection.execute(
            "SELECT p.key, s.kind, s.owner, p.vector FROM passages p JOIN sources s ON s.key = p.source"
            " WHERE p.vector IS NOT NULL ORDER BY p.key"
        ).fetchall()
        self.changes = changes
        self.keys = np.array([row[0] for row in rows], np.int64)
        self.vectors = stacked([row[3] for row in rows])
        self._groups: dict[tuple[str, str], int] = {}
        self._group = np.array([self._groups.setdefault((r[1], r[2]), len(self._groups)) for r in rows], np.int32)

    def nearest(self, vector: Vector, documents: bool, owners: Sequence[str], limit: int) -> list[tuple[int, float]]:
        if not len(self.keys):
            return []
        check_size(vector, self.vectors)
        allowed = [
            number
            for (kind, owner), number in self._groups.items()
            if (documents if kind == Kind.DOCUMENT else owner in owners)
        ]
        scores = self.vectors @ vector
        if len(allowed) < len(self._groups):
            scores = np.where(np.isin(self._group, allowed), scores, -2.0)
        count = min(limit, len(scores))
        best = np.argpartition(-scores, count - 1)[:count]
        ordered = best[np.argsort(-scores[best])]
        return [(int(self.keys[at]), float(scores[at])) for at in ordered if scores[at] > -2.0]


def blob(vector: Vector) -> bytes:
    return np.ascontiguousarray(vector, np.float32).tobytes()


def stacked(blobs: Sequence[bytes]) -> Vectors:
    """Return vectors as they were kept.

    Raises:
        IndexUnavailable: The file is damaged.
    """
    if not blobs:
        return np.zeros((0, 0), np.float32)
    if len({len(one) for one in blobs}) != 1 or not blobs[0] or len(blobs[0]) % np.dtype(np.float32).itemsize:
        raise IndexUnavailable(DAMAGED)
    return np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1)


def check_size(given: Vectors, kept: Vectors) -> None:
    """Vectors of one name and two sizes are of two models.

    Raises:
        OtherModel: They cannot be compared.
    """
    if given.shape[-1] != kept.shape[-1]:
        raise OtherModel(
            f"the embedding model makes vectors of {given.shape[-1]} numbers, and those in the index have "
            f"{kept.shape[-1]}: it is another one under the same name. Give recall.embeddings its own name, or delete "
            "the index and learn anew."
        )


def check_kept(connection: sqlite3.Connection, vectors: Vectors) -> None:
    """Check ``vectors`` against one that the index holds.

    Raises:
        OtherModel: See `check_size`.
    """
    for table in ("passages", "episodes") if len(vectors) else ():
        row = connection.execute(f"SELECT vector FROM {table} WHERE vector IS NOT NULL LIMIT 1").fetchone()
        if row is not None:
            check_size(vectors, stacked([row[0]]))
            return
