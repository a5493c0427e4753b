"""The store in a file: many at once, bounded, and calm when the disk is slow, full, locked or gone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.test_store_contract import numbers, record
from tests.support.lines import until
from voice_agent.store import SqliteStore, StoreUnavailable
from voice_agent.store import link as link_module
from voice_agent.store import writer as writer_module
from voice_agent.store.database import connect, prepare
from voice_agent.store.writer import Retention
from voice_agent.telemetry.metrics import STORE_DROPPED, STORE_FAILURES

ROOT = Path(__file__).parents[2]


async def opened(path: Path, retention: Retention | None = None, **options: object) -> SqliteStore:
    store = SqliteStore(path, retention or Retention(), **options)  # type: ignore[arg-type]
    await store.open()
    return store


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.02)
    monkeypatch.setattr(writer_module, "MAX_RETRY_S", 0.1)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the database as another process that writes for a long time would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


async def recovered(store: SqliteStore) -> None:
    """Wait until everything could be written after all."""
    async with asyncio.timeout(10):
        while not await store.flush(1):  # noqa: ASYNC110 - the disk signals nothing
            await asyncio.sleep(0.02)


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("store-")}


def open_files(directory: Path) -> int:
    """Return how many files below ``directory`` this process has open; 0 where the system does not tell."""
    count = 0
    for link in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            count += str(link.readlink()).startswith(str(directory))
    return count


# --- many at once ------------------------------------------------------------------------------


@given(
    plan=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6), st.booleans()), min_size=1, max_size=60),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_conversations_appended_to_at_once_each_keep_their_order(
    plan: list[tuple[int, int, bool]], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tasks append to five conversations in any interleaving, reading now and then; two stores share the file."""

    async def run() -> None:
        path = tmp_path_factory.mktemp("many") / "c.sqlite3"
        stores = [await opened(path), await opened(path)]
        dice, sent = random.Random(seed), dict.fromkeys(range(5), 0)

        async def talk(conversation: int) -> None:
            store = stores[conversation % 2]
            for target, count, reads in plan:
                if target != conversation:
                    continue
                first = sent[conversation]
                sent[conversation] += count
                name = f"c{conversation}"
                events = [record(first + n, conversation=name) for n in range(count)]
                store.append(name, events, {"turn": first + count})
                if reads:
                    assert await numbers(store, name) == list(range(sent[conversation]))
                await asyncio.sleep(dice.random() / 1000)

        async with asyncio.TaskGroup() as group:
            for conversation in sent:
                group.create_task(talk(conversation))
        for store in stores:
            assert await store.flush(10)
        for conversation, count in sent.items():
            loaded = await stores[(conversation + 1) % 2].load(f"c{conversation}")
            if count == 0:
                assert loaded is None
                continue
            assert loaded is not None
            assert [event["sequence"] for event in loaded.events] == list(range(count))
            assert (loaded.state, loaded.state_sequence) == ({"turn": count}, count - 1)
        for store in stores:
            await store.aclose()

    asyncio.run(run())


async def test_two_processes_may_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    prepare(path)
    script = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        from tests.store.test_store_contract import record
        from voice_agent.store import SqliteStore

        async def main(name):
            store = SqliteStore(Path(sys.argv[1]))
            await store.open()
            for n in range(150):
                store.append(name, [record(n, conversation=name)], {"turn": n})
                # And one that both write to, which they should not.
                store.append("shared", [record(n, conversation="shared", by=name)])
                await asyncio.sleep(0.002)
            assert await store.flush(20)
            await store.aclose()

        asyncio.run(main(sys.argv[2]))
        """
    )
    commands = [[sys.executable, "-c", script, str(path), name] for name in ("a", "b")]
    processes = [await asyncio.create_subprocess_exec(*command, cwd=ROOT) for command in commands]
    assert [await process.wait() for process in processes] == [0, 0]
    store = await opened(path)
    assert await numbers(store, "a") == await numbers(store, "b") == list(range(150))
    shared = await store.load("shared")
    assert shared is not None
    assert [event["sequence"] for event in shared.events] == sorted({event["sequence"] for event in shared.events})
    assert len({event["event_id"] for event in shared.events}) == len(shared.events) == 300
    await store.aclose()


async def test_a_reader_beside_the_writer_sees_what_was_committed(tmp_path: Path) -> None:
    writing, reading = await opened(tmp_path / "c.sqlite3"), await opened(tmp_path / "c.sqlite3")
    writing.append("c", [record(0)], {"turn": 1})
    assert await writing.flush(5)
    assert await numbers(reading) == [0]
    writing.append("c", [record(1)])
    assert await writing.flush(5)
    assert [event["sequence"] for event in await reading.events("c")] == [0, 1]
    await writing.aclose()
    await reading.aclose()


# --- bounds ------------------------------------------------------------------------------------


async def settled(store: SqliteStore, expected: int) -> list[str]:
    """Wait until ``expected`` conversations are left; return their ids."""
    async with asyncio.timeout(10):
        while len(found := (await store.conversations(limit=1000)).conversations) != expected:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return [c.id for c in found]


async def test_conversations_untouched_for_longer_than_the_retention_are_deleted(tmp_path: Path) -> None:
    now = [1_000_000.0]
    store = await opened(tmp_path / "c.sqlite3", clock=lambda: now[0])
    for n in range(60):
        store.append(f"old{n}", [record(0, conversation=f"old{n}", text="a secret of old")])
    await store.flush(5)
    now[0] += 20 * 86_400
    store.append("young", [record(0, conversation="young")])
    await store.aclose()
    now[0] += 11 * 86_400
    store = await opened(tmp_path / "c.sqlite3", Retention(days=30), clock=lambda: now[0])
    store.append("now", [record(0, conversation="now")])
    assert sorted(await settled(store, 2)) == ["now", "young"]
    await store.aclose()
    assert b"a secret of old" not in (tmp_path / "c.sqlite3").read_bytes(), "what is deleted cannot be read any more"


async def test_too_many_conversations_are_cut_to_the_newest(tmp_path: Path) -> None:
    store = await opened(tmp_path / "c.sqlite3")
    for n in range(70):
        store.append(f"c{n:02d}", [record(0, conversation=f"c{n:02d}")])
        await store.flush(5)
    await store.aclose()
    store = await opened(tmp_path / "c.sqlite3", Retention(days=0, max_conversations=5))
    assert sorted(await settled(store, 5)) == [f"c{n}" for n in range(65, 70)]
    await store.aclose()


async def test_a_long_conversation_keeps_its_newest_records(tmp_path: Path) -> None:
    store = await opened(tmp_path / "c.sqlite3", Retention(max_events=600))
    for n in range(0, 3000, 50):
        store.append("c", [record(n + k) for k in range(50)], {"turn": n})
        await store.flush(5)
    kept = await numbers(store)
    assert kept[-1] == 2999 and 600 <= len(kept) <= 600 + 500
    assert (await store.conversations()).conversations[0].events == len(kept)
    await store.aclose()


# --- a disk that is slow, full, locked or gone -------------------------------------------------


async def test_a_slow_disk_holds_up_neither_the_loop_nor_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = await opened(tmp_path / "c.sqlite3")
    release, waited = threading.Event(), threading.Event()
    real = writer_module.write_batch

    def slow(*args: object, **kwargs: object) -> None:
        waited.set()
        release.wait(20)
        real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(writer_module, "write_batch", slow)
    monkeypatch.setattr(writer_module, "SLOW_S", 0.05)
    store.append("c", [record(0)], {"turn": 0})
    await asyncio.to_thread(waited.wait, 10)
    for n in range(1, 500):
        store.append("c", [record(n)], {"turn": n})
        await asyncio.sleep(0)
    assert not await store.flush(0.05)
    release.set()
    assert await numbers(store) == list(range(500))
    assert await store.flush(5)
    await store.aclose()
    assert sum("is the disk too slow" in message for message in caplog.messages) >= 1


async def test_a_database_that_another_process_holds_costs_one_log_line_and_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, quick_retries: None
) -> None:
    monkeypatch.setattr("voice_agent.store.database.BUSY_S", 0.02)
    path = tmp_path / "c.sqlite3"
    store = await opened(path)
    store.append("c", [record(0)])
    assert await store.flush(5)
    failures = STORE_FAILURES._value.get()
    with locked(path), caplog.at_level(logging.WARNING):
        store.append("c", [record(1)], {"turn": 1})
        assert not await store.flush(5), "it says at once that it cannot"
        store.append("c", [record(2)], {"turn": 2})
        await asyncio.sleep(0.3)
        assert await numbers(store) == [0, 1, 2], "a conversation goes on from memory"
        assert await store.events("c") == (record(0),)
    await recovered(store)
    assert [event["sequence"] for event in await store.events("c")] == [0, 1, 2]
    await store.aclose()
    assert STORE_FAILURES._value.get() > failures + 1
    lines = [m for m in caplog.messages if "conversations" in m]
    assert ["cannot be written" in m for m in lines] == [True, False], lines


async def test_a_full_disk_costs_one_log_line_and_what_fits_the_backlog_is_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, quick_retries: None
) -> None:
    """``max_page_count`` makes SQLite fail just as a full disk does: SQLITE_FULL, in the middle of a transaction."""
    room = [60]
    real = connect

    def small(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        connection = real(path, read_only=read_only)
        if not read_only:
            connection.execute(f"PRAGMA max_page_count = {room[0]}")
            writers.append(connection)
        return connection

    writers: list[sqlite3.Connection] = []
    monkeypatch.setattr(link_module, "connect", small)
    store = await opened(tmp_path / "c.sqlite3", max_backlog_events=300)
    sent = 0
    with caplog.at_level(logging.WARNING):
        while await store.flush(5):
            store.append("c", [record(sent, text="x" * 2000)], {"turn": sent})
            sent += 1
        assert sent > 20
        before = sent
        while sent < before + 100:
            store.append("c", [record(sent, text="x" * 2000)], {"turn": sent})
            sent += 1
        loaded = await store.load("c")
        assert loaded is not None and loaded.state == {"turn": sent - 1}
        assert [event["sequence"] for event in loaded.events] == list(range(sent))
        for connection in writers:
            connection.execute("PRAGMA max_page_count = 100000")
        await recovered(store)
    assert [event["sequence"] for event in await store.events("c", limit=1000)] == list(range(sent))
    await store.aclose()
    lines = [m for m in caplog.messages if "conversations" in m]
    assert len(lines) == 2 and "full" in lines[0]


async def test_more_than_the_backlog_holds_gives_up_the_oldest_and_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, quick_retries: None
) -> None:
    monkeypatch.setattr("voice_agent.store.database.BUSY_S", 0.01)
    path = tmp_path / "c.sqlite3"
    store = await opened(path, max_backlog_events=100)
    dropped = STORE_DROPPED._value.get()
    with locked(path), caplog.at_level(logging.ERROR):
        for n in range(250):
            store.append("c", [record(n)], {"turn": n})
        await until(lambda: STORE_DROPPED._value.get() >= dropped + 150)
    await recovered(store)
    loaded = await store.load("c")
    assert loaded is not None
    assert [event["sequence"] for event in loaded.events] == list(range(150, 250))
    assert loaded.state == {"turn": 249}
    await store.aclose()
    assert STORE_DROPPED._value.get() == dropped + 150
    assert sum("given up" in message for message in caplog.messages) == 1


async def test_a_limit_on_file_size_from_the_system_ends_in_a_calm_exit(tmp_path: Path) -> None:
    """A quota: the kernel refuses to let the file grow, and the service goes on and stops in order."""
    script = textwrap.dedent(
        """
        import asyncio, logging, resource, sys
        from pathlib import Path
        from tests.store.test_store_contract import record
        from voice_agent.store import SqliteStore

        async def main():
            logging.basicConfig(level="WARNING", format="%(message)s")
            store = SqliteStore(Path(sys.argv[1]))
            await store.open()
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
            n = 0
            while await store.flush(5):
                store.append("c", [record(n, text="x" * 5000)], {"turn": n})
                n += 1
            loaded = await store.load("c")
            assert loaded.state == {"turn": n - 1} and len(loaded.events) == n
            print(n)
            await store.aclose()

        asyncio.run(main())
        """
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path / "c.sqlite3"), cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert (process.returncode, b"Traceback" in err) == (0, False), err
    assert err.count(b"cannot be written") == 1
    store = await opened(tmp_path / "c.sqlite3")
    kept = await numbers(store)
    assert kept == list(range(len(kept))) and 2 < len(kept) < int(out)
    await store.aclose()


async def test_a_write_ahead_log_that_is_taken_away_is_told_as_the_fault_that_it_is(tmp_path: Path) -> None:
    store = await opened(tmp_path / "c.sqlite3")
    store.append("a", [record(0)])
    assert await store.flush(5)
    for companion in ("-wal", "-shm"):
        (tmp_path / f"c.sqlite3{companion}").unlink()
    store.append("a", [record(1)])
    await store.flush(5)
    with pytest.raises(StoreUnavailable) as caught:
        await store.load("a")
    assert "no transaction is active" not in str(caught.value)
    await store.aclose()


async def test_a_file_that_is_taken_away_while_the_service_runs_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    store = await opened(path)
    store.append("c", [record(0)], {"turn": 0})
    assert await store.flush(5)
    for companion in ("", "-wal", "-shm"):
        os.unlink(f"{path}{companion}")  # noqa: PTH108
    store.append("c", [record(1)], {"turn": 1})
    assert await store.flush(5)
    assert await numbers(store) == [1]
    await store.aclose()
    again = await opened(path)
    assert await numbers(again) == [1]
    await again.aclose()


async def test_damage_met_while_the_service_runs_moves_the_file_aside_and_writing_goes_on(
    tmp_path: Path, quick_retries: None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.sqlite3"
    store = await opened(path)
    for n in range(300):
        store.append("c", [record(n, text="x" * 500)], {"turn": n})
    assert await store.flush(5)
    await store.aclose()
    store = await opened(path)
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(4096 * page)
            file.write(os.urandom(4096))
    store.append("c", [record(300)], {"turn": 300})
    await recovered(store)
    assert (await numbers(store))[-1] == 300
    assert sum(name.startswith("c.sqlite3.damaged-") for name in os.listdir(tmp_path)) >= 1  # noqa: PTH208
    assert any(".recover" in message for message in caplog.messages)
    await store.aclose()


async def test_a_record_that_cannot_be_written_down_keeps_no_other_from_being(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    circle: list[object] = []
    circle.append(circle)
    store = await opened(tmp_path / "c.sqlite3")
    store.append("c", [record(0), {**record(1), "note": {"what": circle}}, record(2)])
    store.append("d", [record(0, conversation="d")])
    store.append("\ud800", [record(0)])
    assert await store.flush(5)
    assert await numbers(store) == [0, 1, 2]
    assert await numbers(store, "d") == [0]
    await store.aclose()
    assert any("without its content" in message for message in caplog.messages)
    assert any("cannot be stored" in message for message in caplog.messages)


async def test_what_can_no_longer_be_read_is_said_to_be_unavailable(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "c.sqlite3")
    with pytest.raises(StoreUnavailable):
        await store.load("c")
    await store.open()
    await store.aclose()
    with pytest.raises(StoreUnavailable):
        await store.events("c")


async def test_a_deletion_that_cannot_be_done_now_is_said_and_done_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_retries: None
) -> None:
    monkeypatch.setattr("voice_agent.store.database.BUSY_S", 0.02)
    path = tmp_path / "c.sqlite3"
    store = await opened(path)
    store.append("c", [record(0)])
    assert await store.flush(5)
    with locked(path):
        with pytest.raises(StoreUnavailable):
            await store.delete("c")
        assert await store.load("c") is None
    async with asyncio.timeout(10):
        while await store.events("c"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await store.aclose()


# --- nothing is left behind --------------------------------------------------------------------


async def test_a_store_that_is_never_opened_starts_no_thread_and_makes_no_file(tmp_path: Path) -> None:
    before = threads()
    store = SqliteStore(tmp_path / "c.sqlite3")
    store.append("c", [record(0)])
    await store.aclose()
    assert threads() == before
    assert os.listdir(tmp_path) == []  # noqa: PTH208


async def test_opening_and_closing_leaves_no_thread_file_or_memory(tmp_path: Path) -> None:
    before = threads()
    for n in range(20):
        store = await opened(tmp_path / "c.sqlite3")
        store.append("c", [record(n)], {"turn": n})
        await store.load("c")
        assert open_files(tmp_path) > 0 or sys.platform != "linux"
        await store.aclose()
    await until(lambda: threads() <= before)
    assert open_files(tmp_path) == 0
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


async def test_appending_for_long_holds_nothing_in_memory(tmp_path: Path) -> None:
    store = await opened(tmp_path / "c.sqlite3")
    for n in range(3000):
        store.append(f"c{n % 50}", [record(n, conversation=f"c{n % 50}")], {"turn": n})
        if n % 100 == 0:
            await store.flush(5)
    assert await store.flush(5)
    assert len(store._backlog) == 0
    assert (store._backlog._waiting, store._backlog._taken, store._writer._waiters) == ({}, {}, set())
    assert store._backlog._bytes == 0
    await store.aclose()


async def test_what_another_process_has_deleted_is_not_brought_back_by_what_this_one_still_held(tmp_path: Path) -> None:
    service, command = await opened(tmp_path / "calls"), await opened(tmp_path / "calls")
    service.append("c", [record(0)], {"memory": ["ann"]})
    assert await service.flush(5)
    await command.delete("c")
    service.append("c", [], {"memory": ["ann"]})
    assert await service.flush(5)
    assert await command.load("c") is None
    service.append("c", [record(1)], {"memory": []})
    assert await numbers(service) == [1]
    await service.aclose()
    await command.aclose()
