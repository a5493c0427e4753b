"""The tables of a conversation database, version by version, and the way from one version to the next.

Version 1   conversations (id, state) and their events, as records in JSON
Version 2   what lists need without opening a record: caller, first and last timestamp, count; the
            number of the last record that a snapshot includes; ``event_id`` beside its record
Version 3   settings that outlive the process, and who changed them

A migration runs in one transaction: a process that dies in it leaves the version it found.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

APPLICATION_ID = 0x766F6963
"""Marks a file as ours (`PRAGMA application_id`): "voic"."""


class SchemaTooNew(Exception):
    """The database was written by a newer version of this program."""

    def __init__(self, found: int) -> None:
        super().__init__(f"schema version {found}; this program knows versions up to {VERSION}")
        self.found = found


class NotOurs(Exception):
    """An SQLite database, but not one of conversations."""


_VERSION_1 = (
    "CREATE TABLE conversations ("
    " key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, saved_at REAL NOT NULL, state TEXT)",
    "CREATE TABLE events (conversation INTEGER NOT NULL, sequence INTEGER NOT NULL, record TEXT NOT NULL)",
    "CREATE UNIQUE INDEX events_by_sequence ON events (conversation, sequence)",
)

_VERSION_2 = (
    "ALTER TABLE conversations ADD COLUMN caller TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE conversations ADD COLUMN started_at TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE conversations ADD COLUMN updated_at TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE conversations ADD COLUMN events INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE conversations ADD COLUMN last_sequence INTEGER NOT NULL DEFAULT -1",
    "ALTER TABLE conversations ADD COLUMN state_sequence INTEGER",
    "ALTER TABLE events ADD COLUMN event_id TEXT",
    "CREATE INDEX conversations_by_time ON conversations (saved_at, key)",
    "CREATE INDEX conversations_by_caller ON conversations (caller, saved_at, key)",
)

_VERSION_3 = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, changed_at TEXT NOT NULL)",
    "CREATE TABLE setting_changes ("
    " key INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL, who TEXT NOT NULL, old TEXT, new TEXT NOT NULL)",
    "CREATE INDEX setting_changes_by_name ON setting_changes (name, key)",
)


def _to_1(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_1:
        connection.execute(statement)


def _to_2(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_2:
        connection.execute(statement)
    keys = connection.execute("SELECT key, id, state FROM conversations").fetchall()
    for key, conversation_id, state in keys:
        rows = connection.execute(
            "SELECT sequence, record FROM events WHERE conversation = ? ORDER BY sequence", (key,)
        ).fetchall()
        records = [(sequence, _parsed(text)) for sequence, text in rows]
        connection.executemany(
            "UPDATE events SET event_id = ? WHERE conversation = ? AND sequence = ?",
            [(record.get("event_id"), key, sequence) for sequence, record in records if "event_id" in record],
        )
        last = records[-1][0] if records else -1
        times = [str(record["timestamp"]) for _, record in records if "timestamp" in record] or [""]
        callers = [str(record["user_id"]) for _, record in records if record.get("user_id")]
        connection.execute(
            "UPDATE conversations SET caller = ?, started_at = ?, updated_at = ?, events = ?, last_sequence = ?,"
            " state_sequence = ? WHERE key = ?",
            (
                callers[-1] if callers else conversation_id,
                times[0],
                times[-1],
                len(records),
                last,
                # Records and state were written together: a snapshot includes all there is.
                None if state is None else last,
                key,
            ),
        )


def _to_3(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_3:
        connection.execute(statement)


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        record = json.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


_MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_to_1, _to_2, _to_3)
VERSION = len(_MIGRATIONS)
"""The version this program writes."""


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of a database; 0 for an empty one.

    Raises:
        NotOurs: It holds something else.
    """
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application not in (0, APPLICATION_ID) or (names and "schema_version" not in names):
        raise NotOurs
    if not names:
        return 0
    (version,) = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    return int(version or 0)


def migrate(connection: sqlite3.Connection) -> tuple[int, int]:
    """Bring a database up to `VERSION`.

    Args:
        connection: In autocommit mode, so that the transaction here is the only one.

    Returns:
        The version before and the version now.

    Raises:
        SchemaTooNew: It is ahead of this program; nothing was changed.
        NotOurs: It holds something else; nothing was changed.
    """
    # Another process may be doing the same: whoever comes second finds it done.
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = version_of(connection)
        if before > VERSION:
            raise SchemaTooNew(before)
        if before < VERSION:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
            )
            for number in range(before, VERSION):
                _MIGRATIONS[number](connection)
                moment = datetime.now(UTC).isoformat(timespec="seconds")
                connection.execute("INSERT INTO schema_version VALUES (?, ?)", (number + 1, moment))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return before, VERSION
