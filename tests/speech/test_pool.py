from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from voice_agent.config import PoolOptions
from voice_agent.speech.pool import PoolClosed, SpeechPool, pool_plan
from voice_agent.speech.protocols import EngineError, PoolOverloaded, Priority, Urgency
from voice_agent.telemetry.metrics import POOL_DEPTH, POOL_REFUSED, POOL_WAIT


@asynccontextmanager
async def running_pool(workers: int = 1, max_queue: int = 64) -> AsyncIterator[SpeechPool]:
    pool = SpeechPool(workers, max_queue)
    pool.start()
    try:
        yield pool
    finally:
        await pool.aclose(5)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until the threads have come to a state; the deadline only ends a hung test."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - threads set no asyncio event
            await asyncio.sleep(0.002)


class Gate:
    """A job that runs until it is let go."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def __call__(self) -> str:
        assert self._open.wait(20), "nobody opened the gate"
        return "through"

    def open(self) -> None:
        self._open.set()


@asynccontextmanager
async def occupied(pool: SpeechPool) -> AsyncIterator[None]:
    """Hold one worker of the pool with an urgent job."""
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        group.create_task(pool.run(gate, priority=Priority.FIRST_AUDIO, job="gate"))
        await until(lambda: pool.busy == 1)
        try:
            yield
        finally:
            gate.open()


async def outcome(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except EngineError as error:
        return type(error)


async def test_a_job_runs_off_the_loop_and_returns_its_result() -> None:
    async with running_pool() as pool:
        name = await pool.run(lambda: threading.current_thread().name, priority=Priority.SPEECH, job="name")
        total = await pool.run(max, 3, 7, priority=Priority.SPEECH, job="max")
    assert name.startswith("speech-")
    assert total == 7


async def test_more_urgent_jobs_run_first_and_equal_ones_in_order() -> None:
    order: list[str] = []
    async with running_pool() as pool, asyncio.TaskGroup() as group, occupied(pool):
        for name, priority in [
            ("partial", Priority.PARTIAL_TRANSCRIPT),
            ("speech 1", Priority.SPEECH),
            ("speech 2", Priority.SPEECH),
            ("final", Priority.FINAL_TRANSCRIPT),
            ("first", Priority.FIRST_AUDIO),
        ]:
            group.create_task(pool.run(order.append, name, priority=priority, job="order"))
        await until(lambda: pool.depth == 5)
    assert order == ["first", "final", "speech 1", "speech 2", "partial"]


async def test_a_full_queue_pushes_out_the_youngest_of_the_least_urgent_jobs() -> None:
    async with running_pool(max_queue=2) as pool, asyncio.TaskGroup() as group, occupied(pool):
        older = group.create_task(outcome(pool.run(int, priority=Priority.PARTIAL_TRANSCRIPT, job="older")))
        younger = group.create_task(outcome(pool.run(int, priority=Priority.PARTIAL_TRANSCRIPT, job="younger")))
        await until(lambda: pool.depth == 2)
        final = group.create_task(outcome(pool.run(int, priority=Priority.FINAL_TRANSCRIPT, job="final")))
        assert await younger is PoolOverloaded
        assert pool.depth == 2
    assert older.result() == 0
    assert final.result() == 0


async def test_a_full_queue_of_equally_urgent_jobs_refuses_the_new_one() -> None:
    refused = POOL_REFUSED.labels(job="newcomer")
    before = refused._value.get()
    async with running_pool(max_queue=1) as pool, asyncio.TaskGroup() as group, occupied(pool):
        group.create_task(pool.run(int, priority=Priority.SPEECH, job="waits"))
        await until(lambda: pool.depth == 1)
        with pytest.raises(PoolOverloaded, match="newcomer was refused: 1 speech jobs are waiting"):
            await pool.run(int, priority=Priority.SPEECH, job="newcomer")
    assert refused._value.get() == before + 1


async def test_a_cancelled_wait_takes_the_job_out_of_the_queue() -> None:
    ran: list[str] = []
    async with running_pool() as pool, occupied(pool):
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(pool.run(ran.append, "ran", priority=Priority.SPEECH, job="cancelled"))
            await until(lambda: pool.depth == 1)
            assert POOL_DEPTH._value.get() == 1
            waiting.cancel()
        assert pool.depth == 0
        assert POOL_DEPTH._value.get() == 0
    assert ran == []


async def test_a_job_cancelled_while_it_runs_finishes_and_the_worker_serves_on() -> None:
    async with running_pool() as pool:
        gate = Gate()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(pool.run(gate, priority=Priority.SPEECH, job="gate"))
            await until(lambda: pool.busy == 1)
            running.cancel()
        assert running.cancelled()
        assert pool.busy == 1
        gate.open()
        assert await pool.run(int, priority=Priority.SPEECH, job="next") == 0


async def test_an_exception_reaches_the_waiter_as_it_is() -> None:
    def fail() -> None:
        raise ZeroDivisionError("of the engine")

    async with running_pool() as pool:
        with pytest.raises(ZeroDivisionError, match="of the engine"):
            await pool.run(fail, priority=Priority.SPEECH, job="fail")


@pytest.mark.parametrize("raised", [StopIteration(), SystemExit(3), KeyboardInterrupt()])
async def test_an_exception_that_no_future_may_carry_becomes_an_engine_error(raised: BaseException) -> None:
    def fail() -> None:
        raise raised

    async with running_pool() as pool:
        with pytest.raises(EngineError, match=type(raised).__name__):
            await pool.run(fail, priority=Priority.SPEECH, job="fail")
        assert await pool.run(int, priority=Priority.SPEECH, job="next") == 0


async def test_optional_work_never_holds_every_worker() -> None:
    gate = Gate()
    async with running_pool(workers=2) as pool, asyncio.TaskGroup() as group:
        group.create_task(pool.run(gate, priority=Priority.PARTIAL_TRANSCRIPT, job="partial"))
        await until(lambda: pool.busy == 1)
        kept_back = group.create_task(pool.run(gate, priority=Priority.SPECULATIVE_TRANSCRIPT, job="speculative"))
        await until(lambda: pool.depth == 1)
        assert await pool.run(int, priority=Priority.FIRST_AUDIO, job="first audio") == 0
        assert pool.depth == 1
        gate.open()
        assert await kept_back == "through"


async def test_one_worker_also_runs_optional_work() -> None:
    async with running_pool() as pool:
        assert await pool.run(int, priority=Priority.PARTIAL_TRANSCRIPT, job="partial") == 0


async def test_closing_fails_the_waiting_jobs_and_lets_the_running_one_finish() -> None:
    pool = SpeechPool(1)
    pool.start()
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(pool.run(gate, priority=Priority.SPEECH, job="running"))
        await until(lambda: pool.busy == 1)
        waiting = group.create_task(outcome(pool.run(int, priority=Priority.SPEECH, job="waiting")))
        await until(lambda: pool.depth == 1)
        closing = group.create_task(pool.aclose(20))
        assert await waiting is PoolClosed
        gate.open()
        await closing
    assert running.result() == "through"
    with pytest.raises(PoolClosed):
        await pool.run(int, priority=Priority.SPEECH, job="late")
    with pytest.raises(PoolClosed):
        pool.start()


async def test_closing_from_three_tasks_at_once_is_safe() -> None:
    pool = SpeechPool(2)
    pool.start()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(pool.aclose(5))
    assert not [t for t in threading.enumerate() if t.name.startswith("speech-") and t in pool._threads]


async def test_an_idle_worker_keeps_nothing_of_the_last_job() -> None:
    class CallState:
        def read(self) -> int:
            return 1

    state = CallState()
    reference = weakref.ref(state)
    async with running_pool() as pool:
        await pool.run(state.read, priority=Priority.SPEECH, job="read")
        del state
        await until(lambda: pool.busy == 0 and (gc.collect() >= 0) and reference() is None)


async def test_waiting_time_is_measured_per_kind_of_job() -> None:
    async with running_pool() as pool:
        await pool.run(int, priority=Priority.SPEECH, job="measured")
    counts = [s.value for s in POOL_WAIT.labels(job="measured")._child_samples() if s.name == "_count"]
    assert counts == [1]


def test_a_pool_without_workers_or_queue_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="workers >= 1"):
        SpeechPool(0)
    with pytest.raises(ValueError, match="max_queue >= 1"):
        SpeechPool(1, 0)


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 8, 64])
@pytest.mark.parametrize("workers", [0, 1, 2, 5, 64])
@pytest.mark.parametrize("threads", [0, 1, 2, 3, 64])
def test_workers_times_threads_never_exceed_the_cores(cores: int, workers: int, threads: int) -> None:
    planned = pool_plan(PoolOptions(workers=workers, threads_per_job=threads), cores)
    assert min(planned) >= 1
    assert planned[0] * planned[1] <= cores


def test_the_plan_keeps_what_the_operator_chose_when_it_fits() -> None:
    assert pool_plan(PoolOptions(workers=2, threads_per_job=3), 8) == (2, 3)
    assert pool_plan(PoolOptions(workers=4), 8) == (4, 2)
    assert pool_plan(PoolOptions(threads_per_job=1), 8) == (8, 1)


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (3, 2), (4, 3), (8, 7)])
def test_the_default_plan_runs_one_thread_per_job_and_spares_a_core_for_the_loop(cores: int, workers: int) -> None:
    assert pool_plan(PoolOptions(), cores) == (workers, 1)


def test_a_plan_beyond_the_cores_is_cut_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert pool_plan(PoolOptions(workers=4, threads_per_job=4), 8) == (4, 2)
    assert "4 workers x 4 threads exceed 8 cores" in caplog.text


async def test_a_waiting_job_moves_forward_when_it_becomes_urgent() -> None:
    order: list[str] = []
    guess = Urgency(Priority.PARTIAL_TRANSCRIPT)
    async with running_pool() as pool, asyncio.TaskGroup() as group, occupied(pool):
        for name, priority in (("speculation", Priority.SPECULATIVE_TRANSCRIPT), ("guess", guess)):
            group.create_task(pool.run(order.append, name, priority=priority, job="order"))
        await until(lambda: pool.depth == 2)
        guess.rise(Priority.FINAL_TRANSCRIPT)
        guess.rise(Priority.WARM_UP)
    assert guess.priority is Priority.FINAL_TRANSCRIPT
    assert order == ["guess", "speculation"]
    guess.rise(Priority.FIRST_AUDIO)
