"""Closing ends in time, whatever else is going on."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.virtual_time import virtual_time
from voice_agent.llm.closing import close_within, end_within
from voice_agent.telemetry.metrics import ABANDONED_TASKS


@virtual_time
async def test_a_second_cancellation_does_not_interrupt_the_closing_and_is_not_lost() -> None:
    closed = []

    async def closing() -> None:
        await asyncio.sleep(0.1)
        closed.append(True)

    async def reader() -> None:
        try:
            await asyncio.sleep(9)
        finally:
            await close_within(closing(), 0.2, "t")

    task = asyncio.ensure_future(reader())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task])
    assert closed == [True]
    assert task.cancelled()


@virtual_time
async def test_a_closing_that_hangs_is_left_at_its_deadline_and_counted() -> None:
    counter = ABANDONED_TASKS.labels(kind="hanging_close")
    before = counter._value.get()
    assert not await close_within(asyncio.sleep(99), 0.2, "hanging_close")
    assert asyncio.get_running_loop().time() == pytest.approx(0.2)
    assert counter._value.get() == before + 1


@virtual_time
async def test_an_error_while_closing_goes_no_further() -> None:
    async def fails() -> None:
        raise OSError("already gone")

    assert await close_within(fails(), 0.2, "t")


@virtual_time
async def test_the_task_that_is_ended_sees_one_cancellation_however_often_its_reader_is_cancelled() -> None:
    cancellations = []

    async def work() -> None:
        for _ in range(2):
            try:
                await asyncio.sleep(0.1 if cancellations else 9)
            except asyncio.CancelledError:
                cancellations.append(asyncio.get_running_loop().time())

    async def reader() -> None:
        task = asyncio.ensure_future(work())
        try:
            await asyncio.sleep(9)
        finally:
            await end_within(task, 0.2, "t")

    reading = asyncio.ensure_future(reader())
    for _ in range(3):
        await asyncio.sleep(0.01)
        reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert cancellations == [pytest.approx(0.01)]
