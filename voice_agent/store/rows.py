"""Batches to rows, rows to records: everything that is said to SQLite while the service runs."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from voice_agent.store.backlog import Batch
from voice_agent.store.protocol import (
    ConversationPage,
    ConversationSummary,
    Record,
    StoredConversation,
    page_size,
)

log = logging.getLogger(__name__)

TRIM_EVERY = 500
"""A conversation is cut to its newest records each time it has grown by this many."""
MAX_KEY = 1 << 62
"""Beyond every key of a row; SQLite knows no larger numbers than twice that."""


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
    numbered = _number(batch, before, lambda id: _is_stored(connection, key, id))
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


@dataclass(slots=True)
class _Numbered:
    """Records fit to stand behind what is stored."""

    events: list[Record]
    last: int
    state_sequence: int
    moved: int = 0


def _number(batch: Batch, last: int, is_stored: Callable[[str], bool]) -> _Numbered:
    """Leave out what is stored already, and number anew what would not come after ``last``."""
    # A snapshot without records of its own includes everything up to here.
    numbered = _Numbered([], last, last)
    for event in batch.events:
        wanted = sequence = event.get("sequence", numbered.last + 1)
        if sequence <= numbered.last:
            if "event_id" in event and is_stored(event["event_id"]):
                continue
            sequence = numbered.last + 1
            numbered.moved += 1
        if event.get("sequence") != sequence:
            event = {**event, "sequence": sequence}
        numbered.events.append(event)
        numbered.last = sequence
        if wanted <= batch.state_sequence:
            numbered.state_sequence = sequence
    return numbered


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


# --- reading -----------------------------------------------------------------------------------


def read_conversation(
    connection: sqlite3.Connection, conversation_id: str, max_events: int
) -> StoredConversation | None:
    """Return a conversation as of one moment; None if it is unknown."""
    connection.execute("BEGIN")
    try:
        row = connection.execute(
            "SELECT key, state, state_sequence FROM conversations WHERE id = ?", (conversation_id,)
        ).fetchone()
        if row is None:
            return None
        key, state, state_sequence = row
        rows = connection.execute(
            "SELECT sequence, record FROM events WHERE conversation = ? ORDER BY sequence DESC LIMIT ?",
            (key, max_events),
        ).fetchall()
    finally:
        # SQLite itself has ended it after some faults, which must stay the ones that are told.
        if connection.in_transaction:
            connection.execute("COMMIT")
    rows.reverse()
    snapshot = None
    if state is not None:
        try:
            snapshot = json.loads(state)
        except ValueError:
            log.warning("the snapshot of conversation %s cannot be read", conversation_id)
    return StoredConversation(_records(rows), snapshot, None if snapshot is None else state_sequence)


def read_events(connection: sqlite3.Connection, conversation_id: str, after: int, limit: int) -> Sequence[Record]:
    rows = connection.execute(
        "SELECT sequence, record FROM events WHERE conversation = (SELECT key FROM conversations WHERE id = ?)"
        " AND sequence > ? ORDER BY sequence LIMIT ?",
        (conversation_id, after, page_size(limit)),
    ).fetchall()
    return _records(rows)


def _records(rows: Sequence[tuple[int, str]]) -> tuple[Record, ...]:
    try:
        # One document instead of thousands: a third of the time.
        parsed: list[Any] = json.loads("[" + ",".join(text for _, text in rows) + "]")
    except ValueError:
        parsed = [_one(text) for _, text in rows]
    found: list[dict[str, Any]] = []
    for (sequence, _), record in zip(rows, parsed, strict=True):
        if isinstance(record, dict):
            if "sequence" not in record:
                record["sequence"] = sequence
            found.append(record)
        else:
            log.warning("record %d of a conversation cannot be read and is left out", sequence)
    return tuple(found)


def _one(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def read_page(connection: sqlite3.Connection, caller: str | None, limit: int, cursor: str | None) -> ConversationPage:
    """Return conversations, the one written last first.

    Raises:
        ValueError: ``cursor`` is not one of ours.
    """
    size = page_size(limit)
    conditions, values = [], []
    if caller is not None:
        conditions.append("caller = ?")
        values.append(caller)
    if cursor is not None:
        conditions.append("(saved_at, key) < (?, ?)")
        values += _place(cursor)  # type: ignore[arg-type]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = connection.execute(
        f"SELECT id, caller, started_at, updated_at, events, saved_at, key FROM conversations {where}"
        " ORDER BY saved_at DESC, key DESC LIMIT ?",
        (*values, size + 1),
    ).fetchall()
    more = f"{rows[size - 1][5].hex()}:{rows[size - 1][6]}" if len(rows) > size else None
    return ConversationPage(tuple(ConversationSummary(*row[:5]) for row in rows[:size]), more)


def _place(cursor: str) -> tuple[float, int]:
    """Return the place that a cursor stands for. Raises ValueError where it is none, or beyond what is ever stored."""
    saved_at, _, key = cursor.partition(":")
    try:
        place = float.fromhex(saved_at), int(key)
    except OverflowError as fault:
        raise ValueError(str(fault)) from None
    if abs(place[1]) >= MAX_KEY:
        raise ValueError("a cursor beyond all rows")
    return place


def merged(stored: StoredConversation | None, batch: Batch, max_events: int) -> StoredConversation | None:
    """Return what is stored with what still waits to be."""
    if batch.delete_first:
        stored = None
        if not batch.events and batch.state is None:
            return None
    events: list[Mapping[str, Any]] = [] if stored is None else list(stored.events)
    last = events[-1]["sequence"] if events else -1
    numbered = _number(batch, last, {event.get("event_id") for event in events}.__contains__)
    newest = tuple([*events, *numbered.events][-max_events:])
    if batch.state is not None:
        return StoredConversation(newest, json.loads(batch.state), numbered.state_sequence)
    return StoredConversation(newest) if stored is None else replace(stored, events=newest)
