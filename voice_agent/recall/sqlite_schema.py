"""The tables of the embedded index, and how its file is opened.

::

    sources    a learnt text: kind, owner, name, digest
    passages   a stretch of one, with its vector (float32, unit length)
    words      full-text index of passages (FTS5); kept in step by triggers
    episodes   an exchange of a conversation, with its vector; never in the full-text index, whose
               segments keep words for a while after they were deleted
    facts      version of the tables, the model of the vectors, a number that grows with each change of passages
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

from voice_agent.diagnostics import RemediableError

APPLICATION_ID = 0x766F7265
"""Marks a file as ours (`PRAGMA application_id`): "vore"."""
VERSION = 1
BUSY_S = 5.0
_HEADER = b"SQLite format 3\x00"

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sources (
    key INTEGER PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
    learnt_at REAL NOT NULL, passages INTEGER NOT NULL, UNIQUE (kind, owner, name));
CREATE TABLE passages (
    key INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    title TEXT NOT NULL, text TEXT NOT NULL, place TEXT NOT NULL, vector BLOB);
CREATE INDEX passages_by_source ON passages (source);
CREATE INDEX passages_without_vector ON passages (key) WHERE vector IS NULL;
CREATE VIRTUAL TABLE words USING fts5 (title, text, content='passages', content_rowid='key', tokenize='porter');
CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
    INSERT INTO words (rowid, title, text) VALUES (new.key, new.title, new.text);
END;
CREATE TRIGGER passage_removed AFTER DELETE ON passages BEGIN
    INSERT INTO words (words, rowid, title, text) VALUES ('delete', old.key, old.title, old.text);
END;
CREATE TABLE episodes (
    key INTEGER PRIMARY KEY, caller TEXT NOT NULL, conversation TEXT NOT NULL, turn TEXT NOT NULL,
    moment REAL NOT NULL, text TEXT NOT NULL, vector BLOB, UNIQUE (conversation, turn));
CREATE INDEX episodes_by_caller ON episodes (caller, moment);
CREATE INDEX episodes_by_moment ON episodes (moment);
CREATE INDEX episodes_without_vector ON episodes (key) WHERE vector IS NULL;
"""


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection in autocommit mode; None for one in memory.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    place = ":memory:" if path is None else f"{path.resolve().as_uri()}?mode=rw"
    connection = sqlite3.connect(
        place, uri=path is not None, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            return connection
        if path is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {16 * 2**20}")
        connection.execute("PRAGMA foreign_keys = ON")
        # What callers said must not be readable in the file after it was deleted.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(path: Path) -> None:
    """Make the file at ``path`` fit for use, readable by its owner only.

    Raises:
        RemediableError: It cannot be; nothing that is there was changed.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        if not stat.S_ISREG(path.stat().st_mode):
            raise _unusable(path, "it is not a file")
        with path.open("rb") as file:
            found = file.read(len(_HEADER))
        path.chmod(0o600)
    except OSError as fault:
        raise _unusable(path, fault.strerror or str(fault)) from fault
    if found and found != _HEADER:
        raise _unusable(path, "it is no index of ours, or its beginning is damaged")
    try:
        connection = connect(path)
        try:
            make_tables(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as fault:
        raise _unusable(path, str(fault)) from fault


def make_tables(connection: sqlite3.Connection, path: Path | None = None) -> None:
    """Make the tables where there are none. Whoever comes second finds it done.

    Raises:
        RemediableError: It is another program's database, or of a newer version.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if tables and application != APPLICATION_ID:
            raise _unusable(path, "it is a database of another program")
        if version > VERSION:
            raise _unusable(path, "it was written by a newer version of this program")
        if not tables:
            for statement in _statements(_TABLES):
                connection.execute(statement)
            connection.execute("INSERT INTO facts VALUES ('changes', '0')")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    # ``executescript`` would commit first, and a killed process leave half of the tables behind.
    found, statement = [], ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


def _unusable(path: Path | None, reason: str) -> RemediableError:
    return RemediableError(
        f"What is to be recalled cannot be kept in {path or 'memory'}: {reason}.",
        "Nothing was changed. Move it aside to begin anew, or set recall.index.path in integrations.yml.",
    )
