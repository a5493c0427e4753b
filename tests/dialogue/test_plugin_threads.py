"""Functions that are not async: in threads that are used again, waited for in place or through the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.lines import until
from voice_agent.dialogue.plugin_threads import PluginThreads, ThreadRefused


@pytest.fixture
def threads() -> Iterator[PluginThreads]:
    made = PluginThreads()
    yield made
    made.close()


def who(_: Any = None) -> int:
    return threading.get_ident()


def test_a_thread_is_used_again_and_is_never_the_callers(threads: PluginThreads) -> None:
    used = set()
    for _ in range(50):
        work = threads.begin(who)
        assert work.stand_by(10)
        used.add(work.outcome())
    assert threading.get_ident() not in used
    assert len(used) < 10


async def test_what_takes_longer_is_waited_for_through_the_loop(threads: PluginThreads) -> None:
    go = threading.Event()
    work = threads.begin(go.wait, 10)
    assert not work.stand_by(0.001)
    waiting = asyncio.ensure_future(work.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    go.set()
    assert await waiting is True
    assert work.is_over
    assert work.seconds > 0


@pytest.mark.parametrize("fault", [ValueError("x"), StopIteration(), SystemExit()])
async def test_what_it_raises_comes_back_and_the_thread_goes_on(threads: PluginThreads, fault: BaseException) -> None:
    def fail() -> None:
        raise fault

    for _ in range(3):
        with pytest.raises(ValueError if isinstance(fault, ValueError) else RuntimeError):
            await threads.run(fail)
    assert await threads.run(who) != threading.get_ident()


async def test_there_are_only_so_many_and_one_that_comes_back_is_free_again() -> None:
    threads = PluginThreads(limit=2)
    go = threading.Event()
    hanging = [threads.begin(go.wait, 10) for _ in range(2)]
    with pytest.raises(ThreadRefused):
        await threads.run(who)
    go.set()
    assert [await work.wait() for work in hanging] == [True, True]
    assert await threads.run(who) != threading.get_ident()
    threads.close()


async def test_threads_end_when_they_are_closed_and_nothing_is_begun_after() -> None:
    threads, go = PluginThreads(), threading.Event()
    own: list[threading.Thread] = []

    def note(wait: bool) -> bool:
        own.append(threading.current_thread())
        return go.wait(10) if wait else True

    busy = threads.begin(note, True)
    await until(lambda: own)
    assert await threads.run(note, False)
    threads.close()
    threads.close()
    own[1].join(10)
    assert not own[1].is_alive()
    assert own[0].is_alive()
    with pytest.raises(ThreadRefused):
        threads.begin(who)
    go.set()
    assert await busy.wait() is True, "what was begun before comes back"
    own[0].join(10)
    assert not own[0].is_alive()


async def test_those_that_hang_in_one_service_take_no_thread_of_another() -> None:
    one, other, go = PluginThreads(limit=1), PluginThreads(limit=1), threading.Event()
    hanging = one.begin(go.wait, 10)
    with pytest.raises(ThreadRefused):
        one.begin(who)
    assert await other.run(who) != threading.get_ident()
    go.set()
    assert await hanging.wait() is True
    one.close()
    other.close()


async def test_a_hundred_at_once_from_many_turns_lose_nothing(threads: PluginThreads) -> None:
    async def one(number: int) -> int:
        return int(await threads.run(lambda: number))

    found: list[int] = []
    for _ in range(20):
        found += await asyncio.gather(*(one(n) for n in range(20)))
    assert found == list(range(20)) * 20
