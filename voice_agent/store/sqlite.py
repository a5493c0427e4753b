"""Conversations in an SQLite file: one writer thread, readers beside it.

event loop ── append ──▶ backlog ──▶ writer thread ──▶ file (WAL)
           ◀── load, events, conversations ── reader thread ◀──┘

Several processes may have the file open. Each conversation belongs to one of them at a time; the
others may read it, and see what has been committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any, TypeVar

from voice_agent.diagnostics import RemediableError
from voice_agent.store.backlog import Backlog
from voice_agent.store.database import connect, prepare
from voice_agent.store.link import Link
from voice_agent.store.numbering import merged
from voice_agent.store.protocol import (
    LOADED_EVENTS,
    ConversationPage,
    Record,
    StoredConversation,
    StoreUnavailable,
)
from voice_agent.store.queries import read_conversation, read_events, read_page
from voice_agent.store.rows import to_text
from voice_agent.store.settings import SettingChange, Value, select, select_changes, upsert
from voice_agent.store.writer import Retention, Writer

MAX_BACKLOG_EVENTS, MAX_BACKLOG_BYTES = 50_000, 64 * 2**20
"""What is kept in memory while it cannot be written."""
SETTLE_S = 1.0
"""How long a read waits for what was just appended to be written; then it is added from memory."""
READ_S = 5.0
CLOSE_S = 5.0
DELETE_S = 10.0

T = TypeVar("T")


class SqliteStore:
    """A `ConversationStore` in one file.

    Args:
        path: The file; made when it is not there, readable by its owner only.
        max_backlog_events: Records kept in memory while they cannot be written.
        clock: The calendar, as seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        retention: Retention = Retention(),  # noqa: B008 - frozen
        *,
        max_backlog_events: int = MAX_BACKLOG_EVENTS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._backlog = Backlog(max_backlog_events, MAX_BACKLOG_BYTES)
        self._writer = Writer(path, self._backlog, retention, clock)
        self._readers: ThreadPoolExecutor | None = None
        self._link = Link(path, read_only=True)
        self._opening = threading.Lock()
        self._closed = False

    async def open(self) -> None:
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        with self._opening:
            if self._readers is not None or self._closed:
                return
            prepare(self.path)
            self._readers = ThreadPoolExecutor(1, "store-reader")
            self._writer.start()

    def append(self, conversation_id: str, events: Sequence[Record], state: Mapping[str, Any] | None = None) -> None:
        # The state is written down at once: the dialogue goes on changing what it refers to.
        text = None if state is None else to_text(state)
        self._backlog.append(conversation_id, events, text)

    async def flush(self, timeout_s: float) -> bool:
        return await self._writer.settled(self._backlog.last_ticket, timeout_s)

    async def load(self, conversation_id: str, *, max_events: int = LOADED_EVENTS) -> StoredConversation | None:
        if self._backlog.unwritten(conversation_id) is not None:
            await self.flush(SETTLE_S)
        # Looked at before the file: what is written in between is in both, and found out by its event id.
        waiting = self._backlog.unwritten(conversation_id)
        stored = await self._read(lambda link: read_conversation(link, conversation_id, max_events))
        return stored if waiting is None else merged(stored, waiting, max_events)

    async def events(self, conversation_id: str, *, after: int = -1, limit: int = 200) -> Sequence[Record]:
        return await self._read(lambda link: read_events(link, conversation_id, after, limit))

    async def conversations(
        self, *, caller: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> ConversationPage:
        return await self._read(lambda link: read_page(link, caller, limit, cursor))

    async def delete(self, conversation_id: str) -> None:
        self._backlog.delete(conversation_id)
        if not await self.flush(DELETE_S):
            raise StoreUnavailable("The conversation could not be deleted yet; it will be when the disk allows.")

    async def read_setting(self, name: str) -> Value | None:
        """See `KeepsSettings`."""
        return await self._read(lambda link: select(link, name))

    async def write_setting(self, name: str, value: Value, *, who: str) -> None:
        """See `KeepsSettings`. On a connection of its own: it is rare, and nothing that calls wait for."""

        def write() -> None:
            connection = connect(self.path)
            try:
                upsert(connection, name, value, who)
            finally:
                connection.close()

        if self._readers is None or self._closed:
            raise StoreUnavailable("The store is not open.")
        try:
            await asyncio.to_thread(write)
        except (sqlite3.Error, OSError) as fault:
            raise StoreUnavailable(f"{self.path} cannot be written: {fault}") from fault

    async def setting_changes(self, name: str, *, limit: int = 100) -> Sequence[SettingChange]:
        """See `KeepsSettings`."""
        return await self._read(lambda link: select_changes(link, name, limit))

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._opening:
            self._writer.stop(CLOSE_S)
            if self._readers is not None:
                closing = self._readers.submit(self._link.close)
                with contextlib.suppress(FutureTimeout):
                    closing.result(CLOSE_S)
                self._readers.shutdown(wait=False)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._readers is None or self._closed:
            raise StoreUnavailable("The store is not open.")
        try:
            async with asyncio.timeout(READ_S):
                return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: query(self._link.get()))
        except (sqlite3.Error, RemediableError, TimeoutError) as fault:
            reason = f"it did not answer within {READ_S:g} seconds" if isinstance(fault, TimeoutError) else str(fault)
            raise StoreUnavailable(f"{self.path} cannot be read: {reason}") from fault
