"""One 20 ms clock for all calls.

Deadlines are counted from the start, so the clock never drifts. After a stall it jumps to the live
edge: the ticks that were missed are counted and told to the subscribers, never replayed::

    deadline   │    │    │    │    │    │    │
    loop       ●    ●    ▒▒▒▒▒stall▒▒●  ●    ●
    tick       1    2                6  7    8      missed = 3 at tick 6
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType

from voice_agent.telemetry.metrics import LOOP_LAG

log = logging.getLogger(__name__)

TICK_S = 0.02
_REPORT_TICKS = 50


class MediaClock:
    """Calls its subscribers every 20 ms of the event loop's time.

    Attributes:
        now: Loop time of the current tick, read once for all subscribers.
        missed: Ticks skipped directly before the current one.
        skipped: Ticks skipped since the clock started.
        lateness: Worst lateness, in seconds, within the last full second.
    """

    def __init__(self, tick_s: float = TICK_S) -> None:
        self._tick_s = tick_s
        self._subscribers: dict[int, Callable[[], None]] = {}
        self._order: tuple[tuple[int, Callable[[], None]], ...] | None = ()
        self._next_key = 0
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self.now = 0.0
        self.missed = self.skipped = 0
        self.lateness = 0.0

    @property
    def subscribers(self) -> int:
        """How many callbacks are called each tick."""
        return len(self._subscribers)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on each tick from now on. Returns the unsubscriber, which is idempotent."""
        key = self._next_key
        self._next_key += 1
        self._subscribers[key] = callback
        self._order = None

        def unsubscribe() -> None:
            if self._subscribers.pop(key, None) is not None:
                self._order = None

        return unsubscribe

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        start, tick, worst, since_report = loop.time(), 0, 0.0, 0
        while True:
            tick += 1
            deadline = start + tick * self._tick_s
            await asyncio.sleep(max(0.0, deadline - loop.time()))
            self.now = loop.time()
            late = self.now - deadline
            self.missed = int(late / self._tick_s) if late >= self._tick_s else 0
            tick += self.missed
            self.skipped += self.missed
            worst, since_report = max(worst, late), since_report + 1 + self.missed
            if since_report >= _REPORT_TICKS:
                self.lateness = max(0.0, worst)
                LOOP_LAG.set(self.lateness)
                worst, since_report = 0.0, 0
            self._tick()

    def _tick(self) -> None:
        if self._order is None:
            self._order = tuple(self._subscribers.items())
        for key, callback in self._order:
            if key not in self._subscribers:
                continue
            try:
                callback()
            except Exception:
                # One call's fault must not silence the others.
                self._subscribers.pop(key, None)
                self._order = None
                log.exception("a subscriber of the media clock failed and was removed")

    async def __aenter__(self) -> MediaClock:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._task = self._group.create_task(self.run(), name="media-clock")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None and self._task is not None
        self._task.cancel()
        await self._group.__aexit__(kind, error, trace)
