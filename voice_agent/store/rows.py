"""Batches to rows: all that is written to SQLite, and deleted from it, while the service runs."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from voice_agent.store.backlog import Batch
from voice_agent.store.numbering import number
from voice_agent.store.protocol import Record

log = logging.getLogger(__name__)

TRIM_EVERY = 500
"""A conversation is cut to its newest records each time it has grown by this many."""


def to_text(value: Any) -> str:
    """Return ``value`` as JSON that SQLite can keep; half a surrogate pair is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=str, separators=(",", ":"))
    return text


def _record_text(event: Record) -> str:
    try:
        return to_text(event)
    except (TypeError, ValueError, RecursionError) as fault:
        log.error("a record that JSON has no form for is stored without its content: %s", fault)
        return to_text({k: v if isinstance(v, str | int) else {"unreadable": True} for k, v in event.items()})


def _plain(text: Any) -> str:
    return str(text).encode("utf-8", "replace").decode()


def write_batch(
    connection: sqlite3.Connection, conversation_id: str, batch: Batch, *, now: float, max_events: int
) -> None:
    """Write one conversation's batch inside the caller's transaction."""
    if batch.delete_first:
        delete(connection, conversation_id)
        if not batch.events and batch.state is None:
            return
    row = connection.execute(
        "SELECT key, last_sequence, started_at, events FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    if row is None:
        if batch.alone:
            # Another process has deleted it: a snapshot of what this one still held must not bring it back.
            return
        inserted = connection.execute(
            "INSERT INTO conversations (id, saved_at, caller) VALUES (?, ?, ?)", (conversation_id, now, conversation_id)
        )
        row = (inserted.lastrowid, -1, "", 0)
    key, before, started_at, count = row
    last, state_sequence, added = _insert_events(connection, key, before, conversation_id, batch)
    newest = batch.events[-1] if batch.events else {}
    oldest = batch.events[0] if batch.events else {}
    connection.execute(
        "UPDATE conversations SET saved_at = ?, last_sequence = ?, events = ?,"
        " caller = coalesce(nullif(?, ''), caller), started_at = ?, updated_at = coalesce(nullif(?, ''), updated_at)"
        " WHERE key = ?",
        (
            now,
            last,
            count + added,
            _plain(newest.get("user_id") or ""),
            started_at or _plain(oldest.get("timestamp") or ""),
            _plain(newest.get("timestamp") or ""),
            key,
        ),
    )
    if batch.state is not None:
        connection.execute(
            "UPDATE conversations SET state = ?, state_sequence = ? WHERE key = ?", (batch.state, state_sequence, key)
        )
    if last // TRIM_EVERY != before // TRIM_EVERY:
        _trim(connection, key, last - max_events)


def _insert_events(
    connection: sqlite3.Connection, key: int, before: int, conversation_id: str, batch: Batch
) -> tuple[int, int, int]:
    """Insert what is new; return the last number given, the one the state includes, and how many are new."""
    numbered = number(batch, before, lambda id: _is_stored(connection, key, id))
    connection.executemany(
        "INSERT INTO events (conversation, sequence, event_id, record) VALUES (?, ?, ?, ?)",
        [(key, event["sequence"], _id_of(event), _record_text(event)) for event in numbered.events],
    )
    if numbered.moved:
        log.warning(
            "%d records of conversation %s were numbered anew: another process, or this one before it could read what"
            " was stored, had used their numbers",
            numbered.moved,
            conversation_id,
        )
    return numbered.last, numbered.state_sequence, len(numbered.events)


def _id_of(event: Record) -> str | None:
    return _plain(event["event_id"]) if "event_id" in event else None


def _is_stored(connection: sqlite3.Connection, key: int, event_id: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM events WHERE conversation = ? AND event_id = ? LIMIT 1", (key, _plain(event_id))
    ).fetchone()
    return found is not None


def _trim(connection: sqlite3.Connection, key: int, up_to: int) -> None:
    removed = connection.execute("DELETE FROM events WHERE conversation = ? AND sequence <= ?", (key, up_to)).rowcount
    if removed:
        connection.execute("UPDATE conversations SET events = events - ? WHERE key = ?", (removed, key))


def delete(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Delete one conversation and its records."""
    row = connection.execute("SELECT key FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    if row is not None:
        _delete_keys(connection, [row[0]])


def prune(connection: sqlite3.Connection, *, older_than: float | None, keep: int, limit: int) -> int:
    """Delete at most ``limit`` conversations that are too old or too many, oldest first; return how many."""
    keys: list[int] = []
    if older_than is not None:
        found = connection.execute(
            "SELECT key FROM conversations WHERE saved_at < ? ORDER BY saved_at, key LIMIT ?", (older_than, limit)
        )
        keys = [row[0] for row in found]
    if not keys:
        (count,) = connection.execute("SELECT count(*) FROM conversations").fetchone()
        found = connection.execute(
            "SELECT key FROM conversations ORDER BY saved_at, key LIMIT ?", (max(0, min(limit, count - keep)),)
        )
        keys = [row[0] for row in found]
    _delete_keys(connection, keys)
    return len(keys)


def _delete_keys(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    rows = [(key,) for key in keys]
    connection.executemany("DELETE FROM events WHERE conversation = ?", rows)
    connection.executemany("DELETE FROM conversations WHERE key = ?", rows)
