"""The file of a conversation database: made private, checked, brought up to date, connected to.

found            done
nothing          made, readable by its owner only
ours, older      migrated
ours, newer      refused: an older program must not write to it
ours, damaged    moved aside whole, never deleted; a new one is begun
something else   refused, untouched
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path

from voice_agent.diagnostics import RemediableError
from voice_agent.store.schema import VERSION, NotOurs, SchemaTooNew, migrate, version_of

log = logging.getLogger(__name__)

HEADER = b"SQLite format 3\x00"
BUSY_S = 5.0
"""How long another process may hold the database before an attempt counts as failed."""
CHECKED_BYTES = 256 * 2**20
"""Larger files are not read whole when the service starts; their faults show when they are met."""
_COMPANIONS = ("", "-wal", "-shm")


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection in autocommit mode, usable from whichever thread holds it.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    # Opened by URI without ``mode=rwc``: a file that has been taken away is not silently made anew.
    uri = f"{path.resolve().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if read_only:
            connection.execute("PRAGMA query_only = ON")
            return connection
        connection.execute("PRAGMA journal_mode = WAL")
        # Each commit reaches the disk itself, so that it outlives a power cut too. The writer's thread waits for it.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {16 * 2**20}")
        # What callers said must not be readable in the file after it was deleted.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(path: Path) -> None:
    """Make the database at ``path`` fit for use.

    Raises:
        RemediableError: It cannot be, with the reason and the remedy.
    """
    try:
        _make(path)
        _check_header(path)
        path.chmod(0o600)
    except OSError as fault:
        raise _unusable(path, fault.strerror or str(fault)) from fault
    try:
        _bring_up_to_date(path)
    except sqlite3.OperationalError as fault:
        raise _unusable(path, str(fault)) from fault
    except sqlite3.DatabaseError as fault:
        _move_aside(path, str(fault))
        _make(path)
        _bring_up_to_date(path)


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is not a file")


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        found = file.read(len(HEADER))
    if found and found != HEADER:
        raise RemediableError(
            f"{path} is not a database of conversations, or its beginning is damaged.",
            f"Nothing was changed. Move it aside (mv '{path}' '{path}.aside') to begin anew, or set store.path.",
        )


def _bring_up_to_date(path: Path) -> None:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        if path.stat().st_size == 0:
            # Lets retention give space back; it can only be set before the first table is made.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        version_of(connection)
        if path.stat().st_size <= CHECKED_BYTES:
            (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if finding != "ok":
                raise sqlite3.DatabaseError(finding)
        before, now = migrate(connection)
        if 0 < before < now:
            log.info("the database of conversations was migrated", extra={"from_version": before, "to_version": now})
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            log.warning("%s cannot use a write-ahead log here: readers will wait for the writer", path)
    except SchemaTooNew as fault:
        raise RemediableError(
            f"{path} was written by a newer version of this program (schema {fault.found}, known {VERSION}).",
            "Install that version again, or set another store.path.",
        ) from None
    except NotOurs:
        raise RemediableError(
            f"{path} is a database of another program.", "Nothing was changed. Set another store.path."
        ) from None
    finally:
        connection.close()


def _move_aside(path: Path, finding: str) -> None:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}.damaged-{moment}")
    for companion in _COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + companion).rename(aside.with_name(aside.name + companion))
    log.error(
        "%s is damaged (%s) and was moved to %s; a new one is begun. To save what it holds: sqlite3 '%s' .recover",
        path,
        finding,
        aside,
        aside,
    )


def _unusable(path: Path, reason: str) -> RemediableError:
    return RemediableError(
        f"Conversations cannot be kept in {path}: {reason}.",
        "Set store.path in integrations.yml to a place that can be written, or to ':memory:' to keep nothing.",
    )
