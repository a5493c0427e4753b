"""Cancellation is a race with a deadline."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import (
    CancelReason,
    CancelToken,
    TurnCancelled,
    WorkCancelledItself,
    limited,
    race,
    within,
)


async def _work(seconds: float, value: str = "done") -> str:
    await asyncio.sleep(seconds)
    return value


@virtual_time
async def test_work_that_wins_returns_its_value() -> None:
    assert (await race(_work(1), CancelToken(), name="t")).value == "done"


@virtual_time
async def test_cancelled_work_is_stopped_at_its_await() -> None:
    loop, token = asyncio.get_running_loop(), CancelToken()
    loop.call_later(1, token.cancel, CancelReason.BARGE_IN)
    with pytest.raises(TurnCancelled) as caught:
        await race(_work(9), token, name="t")
    assert caught.value.reason is CancelReason.BARGE_IN
    assert loop.time() == pytest.approx(1)


@virtual_time
async def test_work_that_returns_inside_the_grace_counts_as_late_result() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            await asyncio.sleep(0.3)
        return "kept"

    token = CancelToken()
    asyncio.get_running_loop().call_later(1, token.cancel, CancelReason.HANG_UP)
    done = await race(stubborn(), token, name="t", grace_s=0.5)
    assert (done.value, done.late) == ("kept", True)


@virtual_time
async def test_work_that_ignores_cancellation_is_abandoned_after_the_grace() -> None:
    async def deaf() -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                await asyncio.sleep(1)

    loop, token, closed = asyncio.get_running_loop(), CancelToken(), []
    loop.call_later(0.5, token.cancel, CancelReason.BARGE_IN)
    with pytest.raises(TurnCancelled):
        await race(deaf(), token, name="deaf", grace_s=0.5, on_abandon=lambda: closed.append(loop.time()))
    assert closed == [pytest.approx(1.0)]
    await asyncio.sleep(5)  # the abandoned task ends by itself


@virtual_time
async def test_uninterruptible_work_finishes_though_the_turn_is_cancelled() -> None:
    token = CancelToken()
    token.cancel(CancelReason.BARGE_IN)
    assert (await race(_work(2), token, name="t", interruptible=False)).value == "done"


@virtual_time
async def test_work_raising_cancelled_error_by_itself_is_a_failure_of_the_work() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    with pytest.raises(WorkCancelledItself):
        await race(odd(), CancelToken(), name="t")


@virtual_time
async def test_cancelling_twice_and_before_the_start_is_safe() -> None:
    token = CancelToken()
    assert token.cancel(CancelReason.TIMEOUT)
    assert not token.cancel(CancelReason.BARGE_IN)
    assert token.reason is CancelReason.TIMEOUT
    with pytest.raises(TurnCancelled):
        await race(_work(1), token, name="t")


@virtual_time
async def test_a_torn_down_turn_takes_its_work_with_it() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(9)
        finally:
            ended.append(True)

    task = asyncio.create_task(race(work(), CancelToken(), name="t"))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


@virtual_time
async def test_work_within_its_limit_returns_its_value_and_is_cut_off_beyond_it() -> None:
    loop = asyncio.get_running_loop()
    assert await within(_work(1), 2, name="t", grace_s=0.5) == "done"
    began = loop.time()
    with pytest.raises(TurnCancelled) as caught:
        await within(_work(9), 2, name="t", grace_s=0.5)
    assert (caught.value.reason, loop.time() - began) == (CancelReason.TIMEOUT, 2)


@virtual_time
async def test_a_token_ends_work_before_its_limit() -> None:
    loop, token = asyncio.get_running_loop(), CancelToken()
    loop.call_later(1, token.cancel, CancelReason.BARGE_IN)
    with pytest.raises(TurnCancelled) as caught:
        await within(_work(9), 5, token, name="t", grace_s=0.5)
    assert (caught.value.reason, loop.time()) == (CancelReason.BARGE_IN, 1)
    unneeded = _work(0)
    with pytest.raises(TurnCancelled):
        await within(unneeded, 5, token, name="t", grace_s=0.5)
    assert inspect.getcoroutinestate(unneeded) == inspect.CORO_CLOSED


@virtual_time
async def test_a_token_with_a_limit_hears_of_both_and_of_neither_afterwards() -> None:
    outer = CancelToken()
    with limited(outer, 2) as timed:
        await asyncio.sleep(3)
    assert (timed.reason, outer.reason) == (CancelReason.TIMEOUT, None)
    with limited(outer, 2) as unhurried:
        pass
    with limited(outer, None) as told:
        outer.cancel(CancelReason.HANG_UP)
    await asyncio.sleep(3)
    assert (told.reason, unhurried.reason) == (CancelReason.HANG_UP, None)
    with limited(outer, 1) as late:
        assert late.reason is CancelReason.HANG_UP


@virtual_time
async def test_work_that_cancels_itself_is_told_from_work_that_took_too_long() -> None:
    async def selfish() -> None:
        raise asyncio.CancelledError

    with pytest.raises(WorkCancelledItself):
        await within(selfish(), 5, name="t", grace_s=0.5)
