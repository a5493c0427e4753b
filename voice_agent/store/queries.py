"""Rows to records: all that is read from SQLite while the service runs."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from voice_agent.store.protocol import (
    ConversationPage,
    ConversationSummary,
    Record,
    StoredConversation,
    page_size,
)

log = logging.getLogger(__name__)

MAX_KEY = 1 << 62
"""Beyond every key of a row; SQLite knows no larger numbers than twice that."""


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
