"""The terminal of a chat: what is said, and beside it what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from voice_agent.authoring.event_lines import EventLines

_MARKS = {
    "tool": ("⚙", "magenta"),
    "failure": ("⚙", "red"),
    "memory": ("✎", "blue"),
    "skill": ("▸", "yellow"),
    "note": ("·", "dim"),
}


class ChatConsole(Console):
    """A console that knows whether a line is open, so that events never break into a sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines = EventLines()
        self._open = False

    def print(self, *objects: Any, end: str = "\n", **options: Any) -> None:
        super().print(*objects, end=end, **options)
        self._open = not end.endswith("\n") and any(str(o) for o in objects)

    def show_event(self, event: Mapping[str, Any]) -> None:
        """Print a tracker event on a line of its own, unless the talk shows it."""
        line = self._lines.line(event)
        if line is None:
            return
        if self._open:
            self.print()
        mark, style = _MARKS[line.kind]
        self.print(Text(f"    {mark} {line.text}", style=style), highlight=False, soft_wrap=True)

    def notice(self, text: str) -> None:
        """Print a remark of the shell itself."""
        self.print(Text(text, style="dim"), highlight=False)
