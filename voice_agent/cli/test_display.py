"""Shows conversation tests while they run: a line for each, transcripts of those that fail, and a table at the end."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from voice_agent.authoring.conversation_reader import LocatedTest
from voice_agent.authoring.event_lines import Line
from voice_agent.authoring.player import Failure, Outcome, Status

_MARKS = {Status.PASSED: ("✓", "green"), Status.FAILED: ("✗", "bold red"), Status.SKIPPED: ("–", "yellow")}
_SPEAKERS = {"caller": ("caller", "bold"), "agent": ("agent", "cyan"), "tool": ("tool", "magenta"),
             "failure": ("tool", "red"),
             "memory": ("memory", "blue"), "skill": ("skill", "yellow"), "clock": ("clock", "dim")}  # fmt: skip


class Display:
    """Prints to standard output; with a progress bar where somebody watches."""

    def __init__(self, total: int, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        columns = SpinnerColumn(), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}")
        self._progress = Progress(*columns, console=self._console, transient=True)
        self._task = self._progress.add_task("", total=total)
        self._live = Live(self._progress, console=self._console, transient=True, refresh_per_second=12)
        self._file: Path | None = None

    @property
    def is_live(self) -> bool:
        return self._console.is_terminal

    def __enter__(self) -> Display:
        self._live.start()
        return self

    def __exit__(self, *fault: Any) -> None:
        self._live.stop()

    def begin(self, test: LocatedTest) -> None:
        self._progress.update(self._task, description=test.test.name)
        if test.path != self._file:
            self._file = test.path
            self._console.print(Text(_short(test.path), style="bold"))

    def show(self, outcome: Outcome) -> None:
        """Print one result, and the transcript if it failed."""
        self._progress.advance(self._task)
        mark, style = _MARKS[outcome.status]
        line = Text.assemble("  ", (mark, style), " ", outcome.test.test.name)
        line.append(f"  {outcome.reason}" if outcome.reason else f"  {outcome.seconds:.2f} s", style="dim")
        self._console.print(line)
        if outcome.status is Status.FAILED:
            self._console.print(_failed(outcome))

    def summary(self, outcomes: list[Outcome]) -> None:
        """Print a table with one row per file, and the total."""
        table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
        table.add_column("file", style="bold")
        for status in Status:
            table.add_column(status.value, justify="right")
        table.add_column("seconds", justify="right", style="dim")
        for path in dict.fromkeys(outcome.test.path for outcome in outcomes):
            table.add_row(_short(path), *_counts([o for o in outcomes if o.test.path == path]))
        self._console.print()
        if len({outcome.test.path for outcome in outcomes}) > 1:
            self._console.print(table, soft_wrap=False)
            self._console.print()
        failed = sum(outcome.status is Status.FAILED for outcome in outcomes)
        parts = [f"{n} {s.value}" for s in Status if (n := sum(o.status is s for o in outcomes))]
        self._console.print(Text(", ".join(parts), style="bold red" if failed else "bold green"))


def _counts(outcomes: list[Outcome]) -> list[Text]:
    cells = []
    for status in Status:
        number = sum(outcome.status is status for outcome in outcomes)
        cells.append(Text(str(number) if number else "·", style=_MARKS[status][1] if number else "dim"))
    return [*cells, Text(f"{sum(o.seconds for o in outcomes):.1f}")]


def _failed(outcome: Outcome) -> Group:
    lines = [_transcript_line(line) for line in outcome.transcript]
    for failure in outcome.failures:
        lines += _failure(outcome, failure)
    return Group(*lines, Text())


def _transcript_line(line: Line) -> Text:
    name, style = _SPEAKERS.get(line.kind, (line.kind, "dim"))
    spoken = line.kind in ("caller", "agent")
    return Text.assemble(("    │ ", "red"), (f"{name:>7} ", style), (line.text, "" if spoken else "dim"))


def _failure(outcome: Outcome, failure: Failure) -> list[Text]:
    where = f"{_short(outcome.test.path)}:{failure.line}" if failure.line else _short(outcome.test.path)
    lines = [Text.assemble(("    ✗ ", "bold red"), (where, "bold"), "  ", failure.what)]
    if failure.expected:
        lines.append(Text.assemble(("      expected  ", "dim"), (failure.expected, "green")))
    if failure.actual:
        actual = _difference(failure) if failure.compare else Text(failure.actual, style="red")
        lines.append(Text.assemble(("      got       " if failure.expected else "      ", "dim"), actual))
    if failure.hint:
        lines.append(Text.assemble("      ", (failure.hint, "yellow")))
    return lines


def _difference(failure: Failure) -> Text:
    """Return what was said, with the words that were not expected standing out."""
    wanted, got = (text.strip("“”'\"").split() for text in (failure.expected, failure.actual))
    matcher = difflib.SequenceMatcher(None, [w.casefold() for w in wanted], [w.casefold() for w in got], False)
    line = Text("“")
    for operation, _, _, start, end in matcher.get_opcodes():
        words = " ".join(got[start:end])
        if words:
            line.append(words, style="default" if operation == "equal" else "bold red")
            line.append(" ")
    line.rstrip()
    return line.append("”")


def _short(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
