"""Names what holds up the event loop.

A tool that blocks (``time.sleep``, a synchronous HTTP client) silences every call of the process, and afterwards
nothing tells which line it was. A thread looks at the media clock, which ticks whenever the loop is free::

    clock    │ │ │ │ │              │ │ │
    loop     ● ● ● ● ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒● ● ●
    looks      ·    ·    ·    ·    ·    ·
                              ▲ no tick for three looks: the line the loop is in goes to the log, once per stall
"""

from __future__ import annotations

import logging
import sys
import sysconfig
import threading
import time
from pathlib import Path
from types import FrameType, TracebackType

from voice_agent.call.clock import MediaClock
from voice_agent.telemetry.metrics import LOOP_STALLS

log = logging.getLogger(__name__)

LOOK_S = 0.1
LOOKS = 3
"""Looks without a tick that make a stall."""
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = str(Path(__file__).parents[1])


class StallWatch:
    """Watches the loop of the thread that enters it, until left."""

    def __init__(self, clock: MediaClock) -> None:
        self._clock = clock
        self._loop_thread = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stall-watch", daemon=True)

    def __enter__(self) -> StallWatch:
        self._loop_thread = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not joined: it only sleeps, and a loop must not wait for a thread.
        self._stop.set()

    def _watch(self) -> None:
        seen, missed, looked_at = self._clock.now, 0, time.monotonic()
        while not self._stop.wait(LOOK_S):
            now, before = time.monotonic(), looked_at
            looked_at = now
            if self._clock.now != seen or now - before > 2 * LOOK_S:
                # It ticks; or the whole process stood still, which is nobody's fault in here.
                seen, missed = self._clock.now, 0
                continue
            missed += 1
            if missed == LOOKS:
                self._report()

    def _report(self) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return
        LOOP_STALLS.inc()
        log.warning(
            "all calls have waited for %.1f s: the event loop is held up in %s. Await there, or use asyncio.to_thread",
            LOOK_S * LOOKS,
            culprit(frame),
        )


def culprit(innermost: FrameType) -> str:
    """Return ``file:line in function`` of the innermost frame that is a project's own code, else of the innermost."""
    frame: FrameType | None = innermost
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_LIBRARIES, _OURS, "<")):
            return _place(frame)
        frame = frame.f_back
    return _place(innermost)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
