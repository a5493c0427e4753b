"""One clock for all calls: on time, without drift, without bursts."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from tests.support.virtual_time import virtual_time
from voice_agent.call.clock import MediaClock


@virtual_time
async def test_it_never_drifts() -> None:
    loop, ticks = asyncio.get_running_loop(), list[float]()
    async with MediaClock() as clock:
        clock.subscribe(lambda: ticks.append(clock.now))
        await asyncio.sleep(3600.01)
    assert len(ticks) == 180_000
    assert ticks[-1] == pytest.approx(3600.0, abs=1e-6)
    assert loop.time() >= 3600


async def test_after_a_stall_it_jumps_to_the_live_edge() -> None:
    ticks = list[tuple[float, int]]()
    async with MediaClock() as clock:
        clock.subscribe(lambda: ticks.append((clock.now, clock.missed)))
        await asyncio.sleep(0.05)
        before = len(ticks)
        time.sleep(0.2)  # noqa: ASYNC251 - the stall under test
        await asyncio.sleep(0.05)
    stalled = ticks[before:]
    missed = stalled[0][1]
    assert missed >= 8, "the skipped ticks are told"
    assert clock.skipped >= missed
    # What was skipped is not replayed: the ticks after the stall lie a tick apart, on the old grid.
    assert len(stalled) <= 5
    grid = (stalled[1][0] - ticks[0][0]) / 0.02
    assert grid == pytest.approx(round(grid), abs=0.45)


@virtual_time
async def test_a_failing_subscriber_is_removed_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    ticks = list[float]()

    def broken() -> None:
        raise RuntimeError("one call's fault")

    with caplog.at_level(logging.ERROR):
        async with MediaClock() as clock:
            clock.subscribe(broken)
            clock.subscribe(lambda: ticks.append(clock.now))
            await asyncio.sleep(1.01)
    assert len(ticks) == 50
    assert len(caplog.records) == 1
    assert clock.subscribers == 1


@virtual_time
async def test_unsubscribing_is_idempotent_and_counts_within_the_tick() -> None:
    ticks = list[str]()
    async with MediaClock() as clock:
        stop_second = clock.subscribe(lambda: None)
        stop_second()

        def first() -> None:
            ticks.append("first")
            stop()

        clock.subscribe(first)
        stop = clock.subscribe(lambda: ticks.append("second"))
        await asyncio.sleep(0.05)
        stop()
    assert ticks == ["first", "first"]
