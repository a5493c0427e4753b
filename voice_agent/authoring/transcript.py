"""What was said and what happened in a conversation test, line by line, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice_agent.authoring.event_lines import EventLines, Line
from voice_agent.authoring.stage import ListeningCaller


class Transcript:
    """Grows turn by turn. ``lines`` is what there is so far."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._events = EventLines()
        self._turn: list[int | Mapping[str, Any]] = []

    def note(self, kind: str, text: str) -> None:
        self.lines.append(Line(kind, text))

    def begin_turn(self, said: str) -> None:
        """The caller has said something."""
        self._turn = []
        self.note("caller", said)

    def event(self, event: Mapping[str, Any]) -> None:
        """A tracker event of the turn."""
        self._turn.append(event)

    def message_begins(self, number: int) -> None:
        """The agent has begun to say a message of the turn."""
        self._turn.append(number)

    def end_turn(self, caller: ListeningCaller) -> None:
        """The turn is over: its messages are whole now."""
        messages = caller.by_number
        for item in self._turn:
            if isinstance(item, int):
                if item in messages:
                    text, response = messages[item]
                    self.note("agent", text + (f"  [{response}]" if response else ""))
            elif (line := self._events.line(item)) is not None:
                self.lines.append(line)
        heard = caller.heard.heard
        if caller.interrupted:
            self.note("caller", f"(interrupts after “{heard}”)" if heard else "(interrupts)")
        if caller.hung_up:
            self.note("agent", "(hangs up)")
