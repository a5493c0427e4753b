"""Functions that are not async: in threads that are used again, waited for in place or through the loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from voice_agent.dialogue import plugin_threads
from voice_agent.dialogue.plugin_threads import ThreadRefused, begin, in_thread


def who(_: Any = None) -> int:
    return threading.get_ident()


def test_a_thread_is_used_again_and_is_never_the_callers() -> None:
    used = set()
    for _ in range(50):
        work = begin(who)
        assert work.stand_by(10)
        used.add(work.outcome())
    assert threading.get_ident() not in used
    assert len(used) < 10


async def test_what_takes_longer_is_waited_for_through_the_loop() -> None:
    go = threading.Event()
    work = begin(go.wait, 10)
    assert not work.stand_by(0.001)
    waiting = asyncio.ensure_future(work.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    go.set()
    assert await waiting is True
    assert work.is_over
    assert work.seconds > 0


@pytest.mark.parametrize("fault", [ValueError("x"), StopIteration(), SystemExit()])
async def test_what_it_raises_comes_back_and_the_thread_goes_on(fault: BaseException) -> None:
    def fail() -> None:
        raise fault

    for _ in range(3):
        with pytest.raises(ValueError if isinstance(fault, ValueError) else RuntimeError):
            await in_thread(fail)
    assert await in_thread(who) != threading.get_ident()


async def test_there_are_only_so_many_and_one_that_comes_back_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_threads, "_free", type(plugin_threads._free)())
    monkeypatch.setattr(plugin_threads, "_count", plugin_threads.MAX_THREADS - 2)
    go = threading.Event()
    hanging = [begin(go.wait, 10) for _ in range(2)]
    with pytest.raises(ThreadRefused):
        await in_thread(who)
    go.set()
    assert [await work.wait() for work in hanging] == [True, True]
    assert await in_thread(who) != threading.get_ident()


async def test_a_hundred_at_once_from_many_turns_lose_nothing() -> None:
    async def one(number: int) -> int:
        return int(await in_thread(lambda: number))

    found: list[int] = []
    for _ in range(20):
        found += await asyncio.gather(*(one(n) for n in range(20)))
    assert found == list(range(20)) * 20
