from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from voice_agent.channels.desk import CallRefused, Deliver, TextHangUp, TextOutcome, TextPiece
from voice_agent.channels.text import TextShell


class Desk:
    """Greets, echoes, hangs up on ``bye``; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []

    async def turn(
        self, conversation_id: str, text: str, deliver: Deliver, *, intent: bool = False, channel: str = "text"
    ) -> TextOutcome:
        self.asked.append((conversation_id, text, intent))
        if text == "refuse":
            raise CallRefused("busy", "Not now.")
        if text == "interrupt":
            raise KeyboardInterrupt
        answer = "Welcome." if intent else f"You said [bold]{text}[/bold] :smile:."
        for piece in answer.split(" "):
            await deliver(TextPiece(0, piece + " ", False))
            await asyncio.sleep(0)
        await deliver(TextPiece(0, "", True))
        if text == "bye":
            await deliver(TextPiece(1, "Goodbye.", True))
            await deliver(TextHangUp("completed"))
        return TextOutcome("t", "completed")


def shell(*lines: str, interactive: bool = False) -> tuple[Desk, str]:
    """Run a whole conversation; returns what was asked and what was printed."""
    desk, out, script = Desk(), io.StringIO(), iter(lines)

    def read_line(prompt: str) -> str:
        assert prompt == ("you ▸ " if interactive else "")
        try:
            return next(script)
        except StopIteration:
            raise EOFError from None

    console = Console(file=out, width=80, force_terminal=False)
    with asyncio.Runner() as runner:
        TextShell(desk, "c1", console, read_line=read_line, interactive=interactive).run(runner)
    return desk, out.getvalue()


def test_the_shell_starts_the_session_and_answers_until_the_input_ends() -> None:
    desk, printed = shell("hello", "", "  again  ")
    assert desk.asked == [("c1", "/session_start", True), ("c1", "hello", False), ("c1", "again", False)]
    assert printed.splitlines()[0].rstrip() == "Welcome."


def test_what_a_model_says_is_printed_as_it_is() -> None:
    _, printed = shell("hello")
    assert "You said [bold]hello[/bold] :smile:." in printed


def test_a_long_answer_is_not_wrapped_in_a_pipe() -> None:
    _, printed = shell("word " * 60)
    assert max(map(len, printed.splitlines())) > 200


@pytest.mark.parametrize("word", ["/quit", "/exit"])
def test_quit_ends_the_shell(word: str) -> None:
    desk, _ = shell(word, "never sent")
    assert [text for _, text, _ in desk.asked] == ["/session_start"]


def test_the_agents_hang_up_ends_the_shell() -> None:
    desk, printed = shell("bye", "never sent", interactive=True)
    assert desk.asked[-1][1] == "bye"
    lines = [line.rstrip() for line in printed.splitlines()]
    assert lines[-2:] == ["agent ▸ Goodbye.", "The agent has hung up (completed)."]


def test_ctrl_c_ends_the_shell_calmly() -> None:
    desk, _ = shell("interrupt", "never sent")
    assert desk.asked[-1][1] == "interrupt"


def test_a_refusal_is_said_and_the_shell_goes_on() -> None:
    desk, printed = shell("refuse", "hello")
    assert "Not now." in printed
    assert desk.asked[-1][1] == "hello"


def test_a_message_that_is_too_long_is_not_sent() -> None:
    desk, printed = shell("x" * 3000)
    assert len(desk.asked) == 1
    assert "at most 2000" in printed


@pytest.fixture(autouse=True)
def keep_event_loop_policy() -> Iterator[None]:
    yield
    asyncio.set_event_loop(None)
