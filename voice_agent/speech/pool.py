"""The bounded worker pool that runs the speech engines of all calls.

Engines block for tenths of a second, so they run in threads: a fixed number of them, behind one
queue ordered by urgency, whose length is bounded and whose depth and waiting times are metrics::

    calls ──run()──▶ [ FIRST_AUDIO | FINAL | SPEECH | SPECULATIVE | PARTIAL ] ──▶ worker 1
                          urgent first, first come first served within a level ──▶ worker 2 (never optional
                                                                                    work on all of them)

A full queue pushes out the least urgent waiting job to admit a more urgent one, and refuses
otherwise: load shows as a clear error on the job that matters least, never as a growing delay.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, cast

from voice_agent.config import PoolOptions
from voice_agent.speech.protocols import EngineError, PoolOverloaded, Priority, Urgency
from voice_agent.telemetry.metrics import ABANDONED_TASKS, POOL_DEPTH, POOL_REFUSED, POOL_RUN, POOL_WAIT

log = logging.getLogger(__name__)
T = TypeVar("T")
P = ParamSpec("P")

FIRST_OPTIONAL = Priority.SPECULATIVE_TRANSCRIPT
"""Work from here on may turn out useless; it never holds every worker when there is more than one."""


def pool_plan(options: PoolOptions, cores: int) -> tuple[int, int]:
    """Return ``(workers, threads per job)`` such that their product does not exceed ``cores``.

    By default each job has one thread, and from four cores on one core is left to the media loop.
    On two cores, two workers of one thread beat one worker of two, by medians (and minima) on a
    shared machine: a transcript and then its spoken answer took 0.52 s (0.32) against 0.53 s
    (0.38), since Whisper decodes on one thread anyway and Piper gains nothing from a second; two
    transcripts at once took 0.33 s (0.17) against 0.45 s (0.26); and a reply that is due while a
    speculative transcript runs need not wait for it, since optional work leaves one worker free.
    An idle machine with a single call could hear 0.05 s sooner with two threads: set
    ``threads_per_job: 2`` for that.

    One number given and the other 0 fits the other to the cores. Numbers that exceed the cores
    are cut with a warning: oversubscribed engines slow each other and the media clock.
    """
    cores = max(1, cores)
    workers, threads = options.workers, options.threads_per_job
    if workers * threads > cores or max(workers, threads) > cores:
        log.warning("speech pool: %d workers x %d threads exceed %d cores and are cut", workers, threads, cores)
    if not workers and not threads:
        return max(min(2, cores), cores - 1), 1
    workers = min(workers or max(1, cores // threads), cores)
    return workers, min(threads or cores, cores // workers)


class PoolClosed(EngineError):
    """The pool was closed while the job waited or ran.

    Not a `CancelledError`: nobody cancelled the waiting task, and a cancellation without a
    canceller would end its task group silently.
    """


@dataclass(slots=True, eq=False)
class _Job:
    urgency: tuple[int, int]
    name: str
    call: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    queued_at: float = field(default_factory=time.monotonic)

    @property
    def is_optional(self) -> bool:
        return self.urgency[0] >= FIRST_OPTIONAL

    def settle(self, result: Any, error: BaseException | None) -> None:
        """Hand the outcome to the waiter's loop, from any thread; a loop that is gone wants no outcome."""

        def deliver() -> None:
            if self.future.done():
                return
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            log.debug("the loop that waited for %s is closed", self.name)


class SpeechPool:
    """Runs blocking engine calls in a fixed number of daemon threads.

    Args:
        workers: Jobs that run at once.
        max_queue: Jobs that may wait; beyond it the least urgent is refused.
    """

    def __init__(self, workers: int, max_queue: int = 64) -> None:
        if workers < 1 or max_queue < 1:
            raise ValueError(f"a pool needs workers >= 1 and max_queue >= 1, not {workers} and {max_queue}")
        self._workers = workers
        self._max_queue = max_queue
        self._optional_limit = max(1, workers - 1)
        self._changed = threading.Condition()
        self._waiting: list[_Job] = []
        self._running: dict[threading.Thread, _Job] = {}
        self._threads: list[threading.Thread] = []
        self._sequence = itertools.count()
        self._closed = False
        self._on_exit: Callable[[], None] | None = None

    @property
    def workers(self) -> int:
        return self._workers

    @property
    def depth(self) -> int:
        """Jobs that wait for a worker."""
        return len(self._waiting)

    @property
    def busy(self) -> int:
        """Jobs that run now."""
        return len(self._running)

    def start(self) -> None:
        """Start the workers. Does nothing when they run; a closed pool stays closed."""
        with self._changed:
            if self._closed:
                raise PoolClosed("the speech pool is closed")
            for number in range(len(self._threads), self._workers):
                thread = threading.Thread(target=self._work, name=f"speech-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    async def run(self, fn: Callable[..., T], *args: Any, priority: Priority | Urgency, job: str) -> T:
        """Run ``fn(*args)`` in a worker and return its result.

        A cancelled await takes the job out of the queue; if it already runs, it finishes and its
        result is dropped.

        Args:
            priority: An `Urgency` that rises while the job waits moves it forward in the queue.
            job: Name of the kind of work in metrics and logs, such as ``"transcribe"``.

        Raises:
            PoolOverloaded: The queue was full of work at least as urgent, or more urgent work
                pushed this job out.
            PoolClosed: The pool is closed, or was while the job waited or ran.
            Exception: Whatever ``fn`` raises, as it is.
        """
        loop = asyncio.get_running_loop()
        urgency = priority if isinstance(priority, Urgency) else Urgency(priority)
        place = (int(urgency.priority), next(self._sequence))
        entry = _Job(place, job, lambda: fn(*args), loop, loop.create_future())
        self._admit(entry)
        forget = urgency.watch(lambda: self._move_forward(entry, urgency.priority))
        try:
            return cast(T, await entry.future)
        finally:
            forget()
            if entry.future.cancelled():
                self._withdraw(entry)

    def _admit(self, entry: _Job) -> None:
        with self._changed:
            if self._closed:
                raise PoolClosed(f"the speech pool is closed; {entry.name} was not run")
            if len(self._waiting) >= self._max_queue:
                # Only a strictly lower level gives way: within a level, who came first stays.
                if self._waiting[-1].urgency[0] <= entry.urgency[0]:
                    POOL_REFUSED.labels(job=entry.name).inc()
                    raise PoolOverloaded(f"{entry.name} was refused: {self._max_queue} speech jobs are waiting")
                pushed_out = self._waiting.pop()
                POOL_REFUSED.labels(job=pushed_out.name).inc()
                pushed_out.settle(None, PoolOverloaded(f"{pushed_out.name} gave way to more urgent speech jobs"))
            bisect.insort(self._waiting, entry, key=lambda waiting: waiting.urgency)
            POOL_DEPTH.set(len(self._waiting))
            self._changed.notify()

    def _move_forward(self, entry: _Job, priority: Priority) -> None:
        with self._changed:
            if entry in self._waiting:
                self._waiting.remove(entry)
                # It keeps its number: among equals, who has waited longer goes first.
                entry.urgency = (int(priority), entry.urgency[1])
                bisect.insort(self._waiting, entry, key=lambda waiting: waiting.urgency)
                self._changed.notify()

    def _withdraw(self, entry: _Job) -> None:
        with self._changed:
            if entry in self._waiting:
                self._waiting.remove(entry)
                POOL_DEPTH.set(len(self._waiting))

    def _may_start_optional(self) -> bool:
        return sum(job.is_optional for job in self._running.values()) < self._optional_limit

    def _take(self) -> _Job | None:
        """Wait for the next job that may start; None when the pool closes."""
        with self._changed:
            while not self._closed:
                # Optional work lies behind all other, so if the head may not start, nothing may.
                if self._waiting and (not self._waiting[0].is_optional or self._may_start_optional()):
                    entry = self._waiting.pop(0)
                    self._running[threading.current_thread()] = entry
                    POOL_DEPTH.set(len(self._waiting))
                    return entry
                self._changed.wait()
            return None

    def _work(self) -> None:
        try:
            while self._run_next():
                pass
        finally:
            with self._changed:
                on_exit = self._on_exit
            if on_exit is not None:
                on_exit()

    def _run_next(self) -> bool:
        # A function of its own, so that an idle worker holds no reference to the last job's call.
        entry = self._take()
        if entry is None:
            return False
        started = time.monotonic()
        POOL_WAIT.labels(job=entry.name).observe(started - entry.queued_at)
        result, error = None, None
        try:
            result = entry.call()
        except Exception as raised:  # noqa: BLE001 - it belongs to the waiter
            # A future cannot carry StopIteration, and a waiter would wait for ever.
            error = EngineError(f"{entry.name} raised {raised!r}") if isinstance(raised, StopIteration) else raised
        except BaseException as raised:  # noqa: BLE001 - must not end the worker or the waiter's loop
            error = EngineError(f"{entry.name} raised {raised!r}")
        POOL_RUN.labels(job=entry.name).observe(time.monotonic() - started)
        with self._changed:
            self._running.pop(threading.current_thread(), None)
            # This worker takes the next job itself, but one that was kept back may now suit another.
            self._changed.notify()
        entry.settle(result, error)
        return True

    async def aclose(self, timeout_s: float) -> None:
        """Close the pool: waiting jobs fail at once, running ones may finish within ``timeout_s``.

        A worker that is still stuck then is abandoned: logged, counted, and its waiter told. Its
        thread is a daemon and does not keep the process alive. Safe to call more than once.
        """
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()

        def on_exit() -> None:
            # The loop may be gone when an abandoned worker comes back at last.
            if not loop.is_closed():
                loop.call_soon_threadsafe(exited.set)

        with self._changed:
            self._closed = True
            self._on_exit = on_exit
            waiting, self._waiting = self._waiting, []
            POOL_DEPTH.set(0)
            self._changed.notify_all()
        for entry in waiting:
            entry.settle(None, PoolClosed(f"the speech pool closed before {entry.name} ran"))
        deadline = loop.time() + timeout_s
        while any(thread.is_alive() for thread in self._threads) and loop.time() < deadline:
            # A thread is still alive for a moment after it has reported its end, hence the short tick.
            exited.clear()
            try:
                async with asyncio.timeout(min(0.05, max(0.0, deadline - loop.time()))):
                    await exited.wait()
            except TimeoutError:
                continue
        self._abandon_stuck()

    def _abandon_stuck(self) -> None:
        with self._changed:
            stuck = [(thread, self._running.pop(thread, None)) for thread in self._threads if thread.is_alive()]
            self._threads.clear()
        for thread, entry in stuck:
            if entry is None:
                continue
            ABANDONED_TASKS.labels(kind="speech worker").inc()
            log.warning("abandoned %s: %s did not end while the pool closed", thread.name, entry.name)
            entry.settle(None, PoolClosed(f"{entry.name} did not end while the speech pool closed"))
