"""The embedded index: passages, words and vectors in an SQLite file, compared in memory by NumPy.

::

    writes ── connection 1, one transaction each ──▶ file (WAL) ── connection 2 ──▶ reads
                                                        └─ vectors of texts, read again when they change

Several processes may have the file open. Vectors of learnt texts are held in memory (1.5 KB each with MiniLM);
those of episodes are read for the one caller who is on the line.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from voice_agent.diagnostics import RemediableError
from voice_agent.recall.chunks import embedded_text
from voice_agent.recall.entries import Episode, Found, Kind, Passage, Source, Who
from voice_agent.recall.fusion import fused
from voice_agent.recall.index import MAX_EPISODES_SEARCHED, Forget, IndexUnavailable, OtherModel, Pending
from voice_agent.recall.sqlite_link import Link
from voice_agent.recall.sqlite_schema import make_tables, prepare
from voice_agent.recall.sqlite_vectors import DAMAGED, Matrix, blob, check_kept, check_size, stacked
from voice_agent.recall.sqlite_words import by_words

if TYPE_CHECKING:
    from voice_agent.recall.index import Vector, Vectors

T = TypeVar("T")
MEANING = 3.0
"""How much the ranking by meaning counts beside that by words: on the labelled questions (tests) the right passage is
among the first five for 93 of 100 (95 with a weight of 2, 90 with 4), for 90 by meaning alone, 66 by words alone."""
CANDIDATES = 20
"""Passages of each ranking, by meaning and by words, that are considered."""
_PASSAGE = "SELECT p.key, s.kind, p.place, p.title, p.text FROM passages p JOIN sources s ON s.key = p.source"


class SqliteIndex:
    """Implements `Index` in one file; in memory without a path."""

    searches_words = True

    def __init__(self, path: Path | None) -> None:
        self.path, self._identity = path, ""
        self._writer: Link | None = None
        self._reader: Link | None = None
        self._matrix: Matrix | None = None

    def open(self, identity: str) -> int:
        self._identity = identity
        try:
            if self.path is not None:
                prepare(self.path)
            self._writer = Link(self.path)
            if self.path is None:
                self._reader = self._writer
                with self._writer.use() as connection:
                    make_tables(connection)
            else:
                self._reader = Link(self.path, read_only=True)
            return self._write(self._claim)
        except (sqlite3.Error, IndexUnavailable) as fault:
            raise RemediableError(
                f"What is to be recalled cannot be kept in {self.path}: {fault}.",
                "Set recall.index.path in integrations.yml to a place that can be written.",
            ) from fault

    def _claim(self, connection: sqlite3.Connection) -> int:
        """Take the file over for this model: vectors of another are taken away, so that they are never compared."""
        found = connection.execute("SELECT value FROM facts WHERE name = 'model'").fetchone()
        if found is None or found[0] != self._identity:
            connection.execute("INSERT OR REPLACE INTO facts VALUES ('model', ?)", (self._identity,))
            connection.execute("UPDATE passages SET vector = NULL")
            connection.execute("UPDATE episodes SET vector = NULL")
            _changed(connection)
        count = "SELECT count(*) FROM {} WHERE vector IS NULL"
        return sum(int(connection.execute(count.format(table)).fetchone()[0]) for table in ("passages", "episodes"))

    # --- learnt texts --------------------------------------------------------------------------

    def replace(self, source: Source, passages: Sequence[Passage], vectors: Vectors) -> None:
        def write(connection: sqlite3.Connection) -> None:
            self._check_model(connection)
            check_kept(connection, vectors)
            _remove(connection, source.kind, source.owner, source.name)
            cursor = connection.execute(
                "INSERT INTO sources (kind, owner, name, digest, learnt_at, passages) VALUES (?, ?, ?, ?, ?, ?)",
                (source.kind, source.owner, source.name, source.digest, source.learnt_at, len(passages)),
            )
            connection.executemany(
                "INSERT INTO passages (source, title, text, place, vector) VALUES (?, ?, ?, ?, ?)",
                [
                    (cursor.lastrowid, _whole(p.title), _whole(p.text), _whole(p.source), blob(vector))
                    for p, vector in zip(passages, vectors, strict=True)
                ],
            )
            _changed(connection)

        self._write(write)

    def remove(self, kind: Kind, owner: str, name: str) -> bool:
        def write(connection: sqlite3.Connection) -> bool:
            found = _remove(connection, kind, owner, name)
            if found:
                _changed(connection)
            return found

        return self._write(write)

    def sources(self, kind: Kind, owner: str | None = None) -> Sequence[Source]:
        with self._read() as connection:
            rows = connection.execute(
                "SELECT kind, owner, name, digest, learnt_at, passages FROM sources"
                " WHERE kind = ? AND (? IS NULL OR owner = ?) ORDER BY name",
                (kind, owner, owner),
            ).fetchall()
        return [Source(Kind(row[0]), *row[1:]) for row in rows]

    def search(
        self, vector: Vector, words: str, *, documents: bool, owners: Sequence[str], limit: int, threshold: float
    ) -> Sequence[Found]:
        with self._read() as connection:
            near = self._vectors(connection).nearest(vector, documents, owners, max(CANDIDATES, limit))
            cosine = dict(near)
            nearest = [key for key, score in near if score >= threshold]
            shared = by_words(connection, words, documents, owners, max(CANDIDATES, limit))
            best = fused(nearest, shared, weights=(MEANING, 1.0))[:limit]
            return _found(connection, best, cosine)

    def search_words(self, words: str, *, documents: bool, owners: Sequence[str], limit: int) -> Sequence[Found]:
        with self._read() as connection:
            return _found(connection, by_words(connection, words, documents, owners, limit), {})

    def _vectors(self, connection: sqlite3.Connection) -> Matrix:
        self._check_model(connection)
        (changes,) = connection.execute("SELECT value FROM facts WHERE name = 'changes'").fetchone()
        if self._matrix is None or self._matrix.changes != changes:
            self._matrix = Matrix(connection, changes)
        return self._matrix

    # --- what was said -------------------------------------------------------------------------

    def keep(self, episodes: Sequence[Episode], vectors: Vectors) -> None:
        def write(connection: sqlite3.Connection) -> None:
            self._check_model(connection)
            check_kept(connection, vectors)
            connection.executemany(
                "INSERT OR REPLACE INTO episodes (caller, conversation, turn, moment, text, vector)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (e.who.caller, e.who.conversation, e.turn, e.moment, _whole(e.text), blob(vector))
                    for e, vector in zip(episodes, vectors, strict=True)
                ],
            )

        self._write(write)

    def episodes(self, vector: Vector, who: Who, *, limit: int, threshold: float) -> Sequence[Found]:
        with self._read() as connection:
            self._check_model(connection)
            # A conversation may have been held before anybody said who the caller is, and by another caller too.
            rows = connection.execute(
                "SELECT key, conversation, turn, moment, text, vector FROM episodes WHERE vector IS NOT NULL AND"
                " ((caller = :caller AND caller <> '') OR (conversation = :conversation AND caller = ''))"
                " ORDER BY moment DESC LIMIT :most",
                {"caller": who.caller, "conversation": who.conversation, "most": MAX_EPISODES_SEARCHED},
            ).fetchall()
        if not rows:
            return []
        kept = stacked([row[5] for row in rows])
        check_size(vector, kept)
        scores = kept @ vector
        best = [int(at) for at in np.argsort(-scores, kind="stable")[:limit] if scores[at] >= threshold]
        return [
            Found(Kind.EPISODE, rows[at][1], "", rows[at][4], float(scores[at]), rows[at][3], rows[at][2])
            for at in best
        ]

    def conversations(self) -> Sequence[str]:
        with self._read() as connection:
            return [row[0] for row in connection.execute("SELECT DISTINCT conversation FROM episodes")]

    def forget(self, what: Forget) -> int:
        def write(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM episodes WHERE (:conversation IS NULL OR conversation = :conversation)"
                " AND (:caller IS NULL OR caller = :caller) AND (:older IS NULL OR moment < :older)",
                {"conversation": what.conversation, "caller": what.caller, "older": what.older_than},
            ).rowcount

        count = self._write(write)
        if count and self.path is not None and self._writer is not None:
            # Else the log would keep the words until it is next written over. A busy reader puts it off, no more.
            with self._writer.use() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return count

    # --- vectors of a new model ----------------------------------------------------------------

    def pending(self, limit: int) -> Sequence[Pending]:
        with self._read() as connection:
            rows = connection.execute(
                "SELECT 'p' || key, title, text FROM passages WHERE vector IS NULL LIMIT ?", (limit,)
            ).fetchall()
            if len(rows) < limit:
                rows += connection.execute(
                    "SELECT 'e' || key, '', text FROM episodes WHERE vector IS NULL LIMIT ?", (limit - len(rows),)
                ).fetchall()
        return [Pending(key, embedded_text(title, text)) for key, title, text in rows]

    def fill(self, pending: Sequence[Pending], vectors: Vectors) -> None:
        def write(connection: sqlite3.Connection) -> None:
            self._check_model(connection)
            check_kept(connection, vectors)
            for prefix, table in (("p", "passages"), ("e", "episodes")):
                connection.executemany(
                    f"UPDATE {table} SET vector = ? WHERE key = ? AND vector IS NULL",
                    [
                        (blob(vector), int(p.key[1:]))
                        for p, vector in zip(pending, vectors, strict=True)
                        if p.key[0] == prefix
                    ],
                )
            _changed(connection)

        self._write(write)

    def close(self) -> None:
        for link in {self._writer, self._reader} - {None}:
            assert link is not None
            link.close()

    # --- connections ---------------------------------------------------------------------------

    def _check_model(self, connection: sqlite3.Connection) -> None:
        found = connection.execute("SELECT value FROM facts WHERE name = 'model'").fetchone()
        if found is None:
            raise IndexUnavailable(DAMAGED)
        (model,) = found
        if model != self._identity:
            raise OtherModel(
                f"the index {self.path} was taken over by a process with the embedding model {model}; this one uses "
                f"{self._identity}. Give all processes the same recall.embeddings, or another recall.index.path."
            )

    def _read(self) -> _Use:
        if self._reader is None:
            raise IndexUnavailable("the index of recall is not open")
        return self._reader.snapshot()

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._writer is None:
            raise IndexUnavailable("the index of recall is not open")
        return self._writer.write(work)


if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    _Use = AbstractContextManager[sqlite3.Connection]


def _changed(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE facts SET value = CAST(value AS INTEGER) + 1 WHERE name = 'changes'")


def _remove(connection: sqlite3.Connection, kind: Kind, owner: str, name: str) -> bool:
    where = (kind, owner, name)
    return connection.execute("DELETE FROM sources WHERE kind = ? AND owner = ? AND name = ?", where).rowcount > 0


def _found(connection: sqlite3.Connection, keys: Sequence[int], cosine: dict[int, float]) -> list[Found]:
    marks = ",".join("?" * len(keys))
    rows = {row[0]: row[1:] for row in connection.execute(f"{_PASSAGE} WHERE p.key IN ({marks})", tuple(keys))}
    return [
        Found(Kind(kind), place, title, text, cosine.get(key, 0.0))
        for key in keys
        if key in rows
        for kind, place, title, text in (rows[key],)
    ]


def _whole(text: str) -> str:
    """Return text that a database can hold: half a surrogate pair cannot be written."""
    return text.encode("utf-8", "replace").decode()
