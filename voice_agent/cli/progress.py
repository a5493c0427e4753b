"""A bar for people while canned speech is made; nothing where nobody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voice_agent.service.service import Progress


class _Bars:
    """One bar per part with more than one step. Gone when the last part is done, so that nothing goes on drawing."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
        self._tasks: dict[str, Any] = {}

    def show(self, part: str, done: int, of: int) -> None:
        if of <= 1:
            return
        if part not in self._tasks:
            self._bars.start()
            self._tasks[part] = self._bars.add_task(part, total=of)
        self._bars.update(self._tasks[part], completed=done)
        if self._bars.finished:
            self.stop()

    def stop(self) -> None:
        self._bars.stop()


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Progress]:
    """Yield a function ``(part, done, of)`` that draws on standard error, or does nothing when ``quiet``."""
    if quiet or not sys.stderr.isatty():
        yield lambda part, done, of: None
        return
    bars = _Bars()
    try:
        yield bars.show
    finally:
        bars.stop()
