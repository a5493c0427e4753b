"""The one thread that writes: takes what has been appended, and commits it in groups.

append   ●  ●●   ●        ●                 ● = records arrive on the event loop
writer   ├5 ms─┤commit├ idle ├5 ms─┤commit├
fault    ──commit x── pause ──commit x── longer pause ──commit ok──   nothing is lost that fits the backlog
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from voice_agent.diagnostics import RemediableError
from voice_agent.store.backlog import Backlog, Batch
from voice_agent.store.link import Link
from voice_agent.store.rows import prune, write_batch
from voice_agent.telemetry.metrics import STORE_BACKLOG, STORE_COMMIT, STORE_DROPPED, STORE_FAILURES

log = logging.getLogger(__name__)

GROUP_S = 0.005
"""How long records are gathered before they are committed together."""
TRANSACTION_EVENTS = 2_000
"""Records of one transaction, so that another process is never kept out for long."""
RETRY_S, MAX_RETRY_S = 0.25, 15.0
"""Pause after a failed commit, doubled each time up to the second figure."""
SLOW_S = 1.0
"""A commit that takes longer than this is worth a log line."""
PRUNE_EVERY_S = 3600.0
PRUNE_AT_ONCE = 25
"""Conversations deleted in one transaction."""
_OF_THE_PLACE = (sqlite3.OperationalError, RemediableError, OSError)


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept.

    Attributes:
        days: A conversation not written for this long is deleted; 0 keeps it.
        max_conversations: Beyond this the one written longest ago is deleted.
        max_events: Records per conversation, the newest.
    """

    days: float = 30
    max_conversations: int = 100_000
    max_events: int = 20_000


@dataclass(eq=False, slots=True)
class _Waiter:
    ticket: int
    loop: asyncio.AbstractEventLoop
    settled: asyncio.Future[bool]

    def tell(self, value: bool) -> None:
        with contextlib.suppress(RuntimeError):  # its loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._set, value)

    def _set(self, value: bool) -> None:
        if not self.settled.done():
            self.settled.set_result(value)


class Writer:
    """Owns the writing connection.

    Args:
        clock: The calendar, as seconds since 1970: retention outlives processes.
    """

    def __init__(self, path: Path, backlog: Backlog, retention: Retention, clock: Callable[[], float]) -> None:
        self._link, self._path, self._backlog = Link(path), path, backlog
        self._retention, self._clock = retention, clock
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._waiters: set[_Waiter] = set()
        self._retry_s = 0.0
        self._reported_drops = 0
        self._prune_at = 0.0

    @property
    def failing(self) -> bool:
        """The last commit failed and none has succeeded since."""
        return self._retry_s > 0

    def start(self) -> None:
        self._thread.start()

    async def settled(self, ticket: int, timeout_s: float) -> bool:
        """Wait until everything up to ``ticket`` is on the disk; False when that fails or takes too long."""
        if self._backlog.settled() >= ticket:
            return True
        if self.failing or not self._thread.is_alive():
            return False
        loop = asyncio.get_running_loop()
        waiter = _Waiter(ticket, loop, loop.create_future())
        with self._lock:
            self._waiters.add(waiter)
        self._answer_waiters()
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter.settled
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def stop(self, timeout_s: float) -> None:
        """Write what can be written and end; blocks, at most ``timeout_s``."""
        self._stop.set()
        self._backlog.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if left := len(self._backlog):
            log.error("the store was closed with %d records that could not be written to %s", left, self._path)

    # --- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                if not self._backlog.wait(PRUNE_EVERY_S if self._pruned() else GROUP_S):
                    if self._stop.is_set():
                        return
                    continue
                self._stop.wait(GROUP_S)
                self._commit()
                if self.failing:
                    if self._stop.is_set():
                        return
                    # Woken by `stop`, it tries once more.
                    self._stop.wait(self._retry_s)
        finally:
            self._link.close()

    def _commit(self) -> None:
        began = time.monotonic()
        batches = self._backlog.take(TRANSACTION_EVENTS)
        STORE_BACKLOG.set(len(self._backlog))
        try:
            self._write(dict(batches))
            self._backlog.done()
        except _OF_THE_PLACE as fault:
            self._failed(fault)
        except sqlite3.DatabaseError as fault:
            if _is_damage(fault):
                self._failed(fault)
                self._repair()
            else:
                self._write_one_by_one(dict(batches))
        except Exception:
            log.exception("what was appended to the store cannot be written together")
            self._write_one_by_one(dict(batches))
        else:
            self._succeeded(time.monotonic() - began)
        self._report_drops()
        self._answer_waiters()

    def _write(self, batches: dict[str, Batch]) -> None:
        connection = self._link.get()
        connection.execute("BEGIN IMMEDIATE")
        try:
            for conversation_id, batch in batches.items():
                write_batch(
                    connection, conversation_id, batch, now=self._clock(), max_events=self._retention.max_events
                )
            connection.execute("COMMIT")
        except BaseException:
            # SQLite itself has rolled back after some faults, such as a full disk.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _write_one_by_one(self, batches: dict[str, Batch]) -> None:
        """One conversation holds something that cannot be stored: it must not keep the others from being."""
        for conversation_id, batch in batches.items():
            try:
                self._write({conversation_id: batch})
            except _OF_THE_PLACE as fault:
                self._failed(fault)
                return
            except Exception:
                log.exception("%d records of conversation %s cannot be stored", len(batch.events), conversation_id)
                STORE_DROPPED.inc(len(batch.events))
            self._backlog.done([conversation_id])

    def _failed(self, fault: Exception) -> None:
        self._backlog.put_back()
        STORE_FAILURES.inc()
        if not self.failing:
            log.error(
                "conversations cannot be written to %s (%s): calls go on, up to a limit everything is kept in memory"
                " and tried again",
                self._path,
                fault,
            )
        self._retry_s = min(max(2 * self._retry_s, RETRY_S), MAX_RETRY_S)

    def _repair(self) -> None:
        try:
            self._link.repair()
        except (RemediableError, sqlite3.Error) as fault:
            log.error("%s", fault)

    def _succeeded(self, seconds: float) -> None:
        STORE_COMMIT.observe(seconds)
        if self.failing:
            log.warning("conversations are written to %s again", self._path)
        elif seconds > SLOW_S:
            log.warning("writing conversations to %s took %.1f s: is the disk too slow?", self._path, seconds)
        self._retry_s = 0.0
        STORE_BACKLOG.set(len(self._backlog))

    def _report_drops(self) -> None:
        dropped = self._backlog.dropped
        if dropped > self._reported_drops:
            if not self._reported_drops:
                log.error("too much waits to be written to %s: the oldest records are given up", self._path)
            STORE_DROPPED.inc(dropped - self._reported_drops)
            self._reported_drops = dropped

    def _answer_waiters(self) -> None:
        settled = self._backlog.settled()
        with self._lock:
            told = [w for w in self._waiters if self.failing or settled >= w.ticket]
            self._waiters.difference_update(told)
        for waiter in told:
            waiter.tell(settled >= waiter.ticket)

    def _pruned(self) -> bool:
        """Delete a few conversations that need not be kept; return whether there is nothing left to do for now."""
        if time.monotonic() < self._prune_at or self.failing or self._stop.is_set():
            return True
        days = self._retention.days
        try:
            connection = self._link.get()
            connection.execute("BEGIN IMMEDIATE")
            deleted = prune(
                connection,
                older_than=self._clock() - days * 86_400 if days else None,
                keep=self._retention.max_conversations,
                limit=PRUNE_AT_ONCE,
            )
            connection.execute("COMMIT")
            if deleted:
                connection.execute("PRAGMA incremental_vacuum(1000)").fetchall()
        except (*_OF_THE_PLACE, sqlite3.DatabaseError) as fault:
            log.warning("old conversations could not be deleted from %s: %s", self._path, fault)
            deleted = 0
            self._link.close()
        if deleted < PRUNE_AT_ONCE:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            return True
        return False


def _is_damage(fault: sqlite3.DatabaseError) -> bool:
    """SQLite raises the base class itself for a damaged or foreign file."""
    return type(fault) is sqlite3.DatabaseError
