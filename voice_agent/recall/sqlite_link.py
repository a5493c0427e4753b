"""A connection to the embedded index, used by one thread at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from voice_agent.recall.index import IndexUnavailable
from voice_agent.recall.sqlite_schema import connect

T = TypeVar("T")


class Link:
    """Faults of SQLite become `IndexUnavailable`."""

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self._connection = connect(path, read_only=read_only)
        self._lock = threading.Lock()

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.ProgrammingError as fault:  # closed meanwhile
                raise IndexUnavailable(str(fault)) from fault
            except sqlite3.Error as fault:
                raise IndexUnavailable(f"the index of recall: {fault}") from fault

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read the index as it is at one moment, whatever other connections and processes commit meanwhile.

        Keys of rows are given out again: what was found by one statement may be another text at the next one.
        """
        with self.use() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do ``work`` in one transaction: all of it or nothing.

        Raises:
            IndexUnavailable: Nothing was done.
        """
        with self.use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result
