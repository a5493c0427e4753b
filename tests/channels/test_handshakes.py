"""Connections that hold a place and say nothing make room for the newest."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.virtual_time import virtual_time
from voice_agent.channels.handshakes import WARN_EVERY_S, Handshakes, MadeRoom

PLACES = 3


async def shake(handshakes: Handshakes, takes_s: float, ends: list[str]) -> None:
    try:
        async with handshakes.place("audiosocket", 5.0):
            await asyncio.sleep(takes_s)
    except TimeoutError:
        ends.append("timeout")
    except MadeRoom:
        ends.append("made room")
    else:
        ends.append("done")


@virtual_time
async def test_the_oldest_makes_room_for_the_newest() -> None:
    handshakes, ends = Handshakes(PLACES), [list[str]() for _ in range(PLACES + 2)]
    async with asyncio.TaskGroup() as group:
        for mine in ends[:PLACES]:
            group.create_task(shake(handshakes, 60, mine))
            await asyncio.sleep(0.1)
        for mine in ends[PLACES:]:
            group.create_task(shake(handshakes, 0.05, mine))
            await asyncio.sleep(0.1)
        # The second of them found the place of the first, which had spoken.
        assert ends == [["made room"], [], [], ["done"], ["done"]]
    assert ends[1:3] == [["timeout"], ["timeout"]]


@virtual_time
async def test_one_whose_time_is_over_at_that_moment_is_no_fault() -> None:
    handshakes, old, new = Handshakes(1), list[str](), list[str]()
    first = asyncio.create_task(shake(handshakes, 60, old))
    await asyncio.sleep(0)
    # The second asks for the place in the step in which the first's time runs out.
    asyncio.get_running_loop().call_at(5.0, lambda: tasks.append(asyncio.create_task(shake(handshakes, 1, new))))
    tasks: list[asyncio.Task[None]] = []
    await asyncio.sleep(10)
    await asyncio.wait({first, *tasks})
    assert new == ["done"]
    assert old in (["timeout"], ["made room"])


@virtual_time
async def test_a_flood_is_one_line_in_the_log_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    handshakes = Handshakes(1)
    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(shake(handshakes, 60, []))
        await asyncio.sleep(WARN_EVERY_S)
        for _ in range(100):
            group.create_task(shake(handshakes, 60, []))
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[:2] for line in lines] == [["audiosocket:", "1"], ["audiosocket:", "99"]]


@virtual_time
async def test_whoever_hangs_up_or_fails_gives_the_place_back() -> None:
    handshakes, ends = Handshakes(1), list[str]()
    with pytest.raises(EOFError):
        async with handshakes.place("audiosocket", 5.0):
            raise EOFError
    gone = asyncio.create_task(shake(handshakes, 60, []))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait({gone})
    first = asyncio.create_task(shake(handshakes, 1, ends))
    await first
    assert ends == ["done"]
