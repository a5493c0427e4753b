"""A connection that follows its file: opened when first needed, and anew when the file has been replaced."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from voice_agent.store.database import connect, prepare


class Link:
    """Used by one thread at a time."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path, self._read_only = path, read_only
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def get(self) -> sqlite3.Connection:
        """Return the connection.

        Raises:
            RemediableError: There is no usable file, and none can be made.
            sqlite3.Error: It cannot be opened.
        """
        file = self._identity()
        if self._connection is not None and file == self._file:
            return self._connection
        self.close()
        if file is None:
            prepare(self._path)
        self._connection = connect(self._path, read_only=self._read_only)
        self._file = self._identity()
        return self._connection

    def repair(self) -> None:
        """Look at the file again from the beginning: a damaged one is moved aside.

        Raises:
            RemediableError: Nothing can be done from here.
        """
        self.close()
        prepare(self._path)

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - once per write: half the cost of Path.stat
        except OSError:
            return None
        return found.st_dev, found.st_ino
