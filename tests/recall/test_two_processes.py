"""Two processes use one index at once, and one of them is killed while it writes."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel
from tests.recall.index_contract import WORDS, found, learn
from tests.recall.test_memories import ON, document, make
from voice_agent.config_files import load_config
from voice_agent.dialogue.agent import Agent
from voice_agent.recall.entries import Episode, Kind, Who
from voice_agent.recall.index import Forget
from voice_agent.recall.memories import Memories
from voice_agent.recall.sqlite_index import SqliteIndex
from voice_agent.recall.sqlite_words import by_words
from voice_agent.service.recall import RecallKeeper
from voice_agent.store import MemoryStore

LINES = 25
WRITER = """
import asyncio, sys
from pathlib import Path
from tests.recall.test_memories import ON, document, make
from tests.recall.test_two_processes import LINES
from voice_agent.recall.entries import Episode, Who

async def main():
    memories = make(Path(sys.argv[1]), **ON)
    await memories.open(wanted=True)
    n = 0
    while True:
        n += 1
        await memories.library.learn(document("a.md", *[f"edition{n} line{m}" for m in range(LINES)], digest=str(n)))
        await memories.keep([Episode(Who("ann", f"c{n}"), f"{m}", float(n), f"edition{n}", "") for m in range(10)])
        print(n, flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def writer(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that learns one edition of a text after another, until it is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])},
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def editions(memories: Memories) -> set[str]:
    """Return which editions a search finds, having checked that it finds the whole text."""
    hits = await memories.search("edition line1 line2 line3", (), 2 * LINES) or ()
    passages = [one for one in hits if one.source == "a.md"]
    assert len(passages) == LINES
    return {one.text.split()[0] for one in passages}


async def test_one_learns_while_the_other_searches_and_forgets_and_a_kill_leaves_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "recall"
    ours = make(path, threshold=0.0, k=50, **ON)
    async with writer(path) as process:
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), 60)
        await ours.open(wanted=True)
        seen: set[str] = set()
        forgotten = learnt = 0
        while len(seen) < 6 or not forgotten:
            now = await editions(ours)
            assert len(now) == 1, "a search saw two editions of one text"
            seen |= now
            said = [one for one in await ours.recall("edition", Who("ann", "here")) if one.kind is Kind.EPISODE]
            assert all(count == 10 for count in _counts([one.source for one in said]).values())
            if said:
                forgotten += await ours.forget(Forget(conversation=said[0].source))
            await ours.keep([Episode(Who("bob", "b"), str(learnt), 1.0, "ours", "")])
            await ours.library.learn(document("b.md", f"ours {learnt}", digest=str(learnt)))
            learnt += 1
        process.send_signal(signal.SIGKILL)
        rest = await process.stdout.read()
        await process.wait()

    (last,) = await editions(ours)
    acknowledged = max([0, *map(int, rest.split())])
    assert int(last.removeprefix("edition")) >= acknowledged
    # No lock is left behind: what is written now is written at once.
    await ours.library.learn(document("c.md", "after the kill"))
    assert [source.name for source in await ours.library.sources()] == ["a.md", "b.md", "c.md"]
    await ours.forget(Forget(caller="ann"))
    assert [one.text for one in await ours.recall("edition", Who("ann", "x")) if one.kind is Kind.EPISODE] == []
    await ours.aclose()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("SELECT count(*) FROM episodes WHERE caller = 'ann'").fetchone() == (0,)


def _counts(names: list[str]) -> dict[str, int]:
    return {name: names.count(name) for name in names}


def test_a_search_sees_the_index_as_it_was_at_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = SqliteIndex(tmp_path / "r"), SqliteIndex(tmp_path / "r")
    for index in (ours, theirs):
        index.open(WORDS.identity)
    learn(ours, "a.md", "router one", "router two")

    def meanwhile(*arguments: Any) -> list[int]:
        # Keys of deleted rows are given out again: here to a reference that this search must not see.
        keys = by_words(*arguments)
        theirs.remove(Kind.DOCUMENT, "", "a.md")
        learn(theirs, "s.md", "router secret", "router hidden", kind=Kind.REFERENCE, owner="desk")
        return keys

    monkeypatch.setattr("voice_agent.recall.sqlite_index.by_words", meanwhile)
    assert sorted(found(ours, "router")) == ["router one", "router two"]
    monkeypatch.undo()
    assert found(ours, "router") == []
    for index in (ours, theirs):
        index.close()


async def test_the_running_service_finds_what_was_learnt_beside_it_and_no_longer_what_was_unlearnt(
    tmp_path: Path,
) -> None:
    service, command = make(tmp_path / "r"), make(tmp_path / "r")
    project = Agent.load(load_config(Path(__file__).parents[2], {}), ScriptedModel([])).project
    keeper = RecallKeeper(service, MemoryStore(), lambda: project, 0)
    await keeper.open()
    await keeper.catch_up()
    assert not service.is_open
    await command.open(wanted=True)
    await command.library.learn(document("a.md", "router words"))
    await keeper.catch_up()
    assert [one.text for one in await service.search("router words", (), 1) or ()] == ["router words"]
    assert service.has_references("")
    await command.library.unlearn("a.md")
    await keeper.catch_up()
    assert not service.knows_documents
    await service.aclose()
    await command.aclose()
