"""The text shell: the same dialogue without audio, in a terminal or through a pipe.

The loop runs only while the agent answers; at the prompt the terminal has the process to itself, so that
line editing, end of input and Ctrl-C behave as everywhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rich.console import Console

from voice_agent.channels.desk import CallRefused, TextDesk, TextHangUp, TextItem
from voice_agent.channels.messages import MAX_TEXT, typed, whole

QUIT = ("/quit", "/exit")


class TextShell:
    """One conversation at a terminal.

    Args:
        read_line: Returns the caller's next line, given the prompt; raises `EOFError` at the end of input.
        interactive: Somebody is typing; otherwise no prompts are written, only what the agent says.
    """

    def __init__(
        self,
        desk: TextDesk,
        conversation_id: str,
        console: Console,
        *,
        read_line: Callable[[str], str] = input,
        interactive: bool = True,
    ) -> None:
        self._desk, self._id, self._console = desk, conversation_id, console
        self._read_line, self._interactive = read_line, interactive
        self._message: int | None = None
        self._hung_up = False

    def run(self, runner: asyncio.Runner) -> None:
        """Greet, then answer line by line until the input or the conversation ends, or somebody presses Ctrl-C."""
        try:
            runner.run(self._turn("/session_start", intent=True))
            while not self._hung_up:
                line = self._next_line()
                if line is None:
                    return
                if line:
                    runner.run(self._turn(line))
        except (KeyboardInterrupt, EOFError):
            if self._interactive:
                self._console.print()

    def _next_line(self) -> str | None:
        line = typed(self._read_line("you ▸ " if self._interactive else ""))
        if line in QUIT:
            return None
        if len(line) > MAX_TEXT:
            self._notice(f"A message may have at most {MAX_TEXT} characters; this one was not sent.")
            return ""
        return line

    async def _turn(self, text: str, *, intent: bool = False) -> None:
        self._message = None
        try:
            await self._desk.turn(self._id, text, self._deliver, intent=intent)
        except CallRefused as refusal:
            self._notice(refusal.message)
        finally:
            self._end_line()

    async def _deliver(self, item: TextItem) -> None:
        if isinstance(item, TextHangUp):
            self._hung_up = True
            self._end_line()
            if self._interactive:
                self._notice(f"The agent has hung up ({item.reason}).")
            return
        if item.text and item.message != self._message:
            self._end_line()
            self._message = item.message
            if self._interactive:
                self._console.print("agent ▸ ", end="", style="bold cyan")
        # What a model says is never markup.
        self._console.print(whole(item.text), end="", markup=False, highlight=False, emoji=False, soft_wrap=True)

    def _end_line(self) -> None:
        if self._message is not None:
            self._console.print()
            self._message = None

    def _notice(self, text: str) -> None:
        self._console.print(text, style="dim", markup=False, highlight=False)
