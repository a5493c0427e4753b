"""The file of a database: private, migrated, refused when too new, moved aside when damaged."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.store.test_store_contract import record
from voice_agent.diagnostics import RemediableError
from voice_agent.store import SqliteStore
from voice_agent.store.database import connect, prepare
from voice_agent.store.schema import APPLICATION_ID, VERSION
from voice_agent.store.writer import Retention

OLD = [
    {**record(0, text="hello"), "user_id": "ann"},
    {**record(4, "bot", text="Hi."), "user_id": "ann"},
]


def version_1(path: Path) -> None:
    """Build a database as the first version made it."""
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);
        INSERT INTO schema_version VALUES (1, '2030-01-01T00:00:00+00:00');
        CREATE TABLE conversations (
            key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, saved_at REAL NOT NULL, state TEXT);
        CREATE TABLE events (conversation INTEGER NOT NULL, sequence INTEGER NOT NULL, record TEXT NOT NULL);
        CREATE UNIQUE INDEX events_by_sequence ON events (conversation, sequence);
        """
    )
    connection.execute("INSERT INTO conversations VALUES (1, 'c', 1000.0, ?)", (json.dumps({"turn": 2}),))
    connection.execute("INSERT INTO conversations VALUES (2, 'flat', 2000.0, NULL)")
    rows = [(1, r["sequence"], json.dumps(r)) for r in OLD]
    rows += [(2, 0, json.dumps({"event": "user", "text": "old"})), (2, 1, "not json")]
    connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()


def versions(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT version FROM schema_version ORDER BY version")]
    finally:
        connection.close()


async def test_a_new_file_and_its_companions_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "c.sqlite3"
    old = os.umask(0)
    try:
        store = SqliteStore(path)
        await store.open()
        store.append("c", [record(0)])
        assert await store.flush(5)
        files = list(path.parent.iterdir())
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert len(files) >= 2, "the write-ahead log is there too"
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        await store.aclose()
    finally:
        os.umask(old)


def test_a_new_file_has_the_newest_schema_and_a_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    prepare(path)
    assert versions(path) == list(range(1, VERSION + 1))
    connection = connect(path)
    pragmas = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "auto_vacuum", "application_id")
    }
    connection.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "auto_vacuum": 2, "application_id": APPLICATION_ID}


async def test_a_database_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    version_1(path)
    store = SqliteStore(path, Retention(days=0))
    await store.open()
    loaded = await store.load("c")
    assert loaded is not None
    assert (list(loaded.events), loaded.state, loaded.state_sequence) == (OLD, {"turn": 2}, 4)
    flat = await store.load("flat")
    assert flat is not None and [e["text"] for e in flat.events] == ["old"]
    (ann,) = (await store.conversations(caller="ann")).conversations
    assert (ann.id, ann.events, ann.started_at, ann.updated_at) == (
        "c", 2, "2030-01-01T00:00:00.000Z", "2030-01-01T00:00:04.000Z",
    )  # fmt: skip
    store.append("c", [record(5)], {"turn": 3})
    await store.aclose()
    assert versions(path) == list(range(1, VERSION + 1))
    prepare(path)
    assert versions(path) == list(range(1, VERSION + 1))


def test_a_migration_that_dies_half_way_leaves_the_old_version_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.sqlite3"
    version_1(path)

    def killed(text: str) -> dict[str, object]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("voice_agent.store.schema._parsed", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(path)
    assert versions(path) == [1]
    prepare(path)
    assert versions(path) == list(range(1, VERSION + 1))


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    prepare(path)
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO schema_version VALUES (?, 'later')", (VERSION + 1,))
    connection.commit()
    connection.close()
    with pytest.raises(RemediableError, match=f"newer version.*schema {VERSION + 1}") as fault:
        prepare(path)
    assert "Install that version again" in fault.value.remedy
    assert versions(path)[-1] == VERSION + 1


def test_a_damaged_database_is_moved_aside_whole_and_a_new_one_is_begun(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.sqlite3"
    prepare(path)
    connection = connect(path)
    connection.executemany(
        "INSERT INTO events (conversation, sequence, record) VALUES (1, ?, ?)", [(n, "x" * 900) for n in range(200)]
    )
    connection.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096 * 4 : 4096 * 9] = os.urandom(4096 * 5)
    path.write_bytes(damaged)
    with caplog.at_level(logging.ERROR):
        prepare(path)
    (aside,) = tmp_path.glob("c.sqlite3.damaged-*Z")
    assert aside.read_bytes() == damaged
    assert versions(path) == list(range(1, VERSION + 1))
    (line,) = caplog.messages
    assert str(aside) in line and ".recover" in line
    prepare(path)
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1


@pytest.mark.parametrize("content", [b"dear diary", os.urandom(8192)])
def test_a_file_that_is_something_else_is_refused_with_the_remedy_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(RemediableError) as fault:
        prepare(path)
    assert (str(path) in fault.value.message, "Move it aside" in fault.value.remedy) == (True, True)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(RemediableError, match="another program"):
        prepare(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_error_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RemediableError, match="cannot be kept") as fault:
        prepare(tmp_path / "file" / "c.sqlite3")
    assert "store.path" in fault.value.remedy
    with pytest.raises(RemediableError, match="it is not a file"):
        (tmp_path / "directory").mkdir()
        prepare(tmp_path / "directory")


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    path.touch()
    prepare(path)
    assert versions(path) == list(range(1, VERSION + 1))
