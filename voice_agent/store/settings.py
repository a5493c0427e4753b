"""Settings that outlive the process, with a record of who changed them: a matter of few and small values.

A store of conversations may keep them, too (`KeepsSettings`); where it does not, they live as long as the process.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One change.

    Attributes:
        at: ISO timestamp, UTC.
        who: Fingerprint of the key that was used; ``loopback`` without one.
        old: None if there was nothing before.
    """

    name: str
    at: str
    who: str
    old: Value | None
    new: Value


@runtime_checkable
class KeepsSettings(Protocol):
    """A store that keeps settings beside its conversations."""

    async def read_setting(self, name: str) -> Value | None:
        """Return a setting as it was written last; None if it never was.

        Raises:
            StoreUnavailable: It cannot be read now.
        """
        ...

    async def write_setting(self, name: str, value: Value, *, who: str) -> None:
        """Write a setting and the record of its change, both or neither; durable on return.

        Raises:
            StoreUnavailable: Nothing was written.
        """
        ...

    async def setting_changes(self, name: str, *, limit: int = 100) -> Sequence[SettingChange]:
        """Return the newest changes of a setting, the newest first.

        Raises:
            StoreUnavailable: They cannot be read now.
        """
        ...


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def select(connection: sqlite3.Connection, name: str) -> Value | None:
    """Read a setting; one that is no JSON object counts as never written."""
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    return None if row is None else _value(row[0])


def upsert(connection: sqlite3.Connection, name: str, value: Value, who: str) -> None:
    """Write a setting and its change in one transaction."""
    text, at = json.dumps(value, ensure_ascii=False), now()
    connection.execute("BEGIN IMMEDIATE")
    try:
        row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        connection.execute(
            "INSERT INTO settings (name, value, changed_at) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at",
            (name, text, at),
        )
        connection.execute(
            "INSERT INTO setting_changes (name, at, who, old, new) VALUES (?, ?, ?, ?, ?)",
            (name, at, who, None if row is None else row[0], text),
        )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def select_changes(connection: sqlite3.Connection, name: str, limit: int) -> list[SettingChange]:
    rows = connection.execute(
        "SELECT at, who, old, new FROM setting_changes WHERE name = ? ORDER BY key DESC LIMIT ?", (name, limit)
    ).fetchall()
    return [SettingChange(name, at, who, _value(old), _value(new) or {}) for at, who, old, new in rows]


def _value(text: str | None) -> Value | None:
    try:
        found = None if text is None else json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
