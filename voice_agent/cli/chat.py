"""``voice-agent chat``: the agent by text."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import click

from voice_agent.diagnostics import Problem
from voice_agent.telemetry.logging import configure


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--conversation", metavar="ID", help="Name of the conversation; a new one by default.")
@click.option("--ephemeral", is_flag=True, help="Keep nothing of what is said; known conversations are not continued.")
@click.option("--events", is_flag=True, help="Show tool runs, memory and skills as they happen.")
@click.option("--reload", "watch", is_flag=True, help="Look for changes of the project's files before each turn.")
@click.option("--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="warning")
def chat(path: Path, conversation: str | None, ephemeral: bool, events: bool, watch: bool, log_level: str) -> None:
    """Talk to the agent of the project in PATH by text. End with /quit, Ctrl-D or Ctrl-C."""
    configure(log_level)
    from voice_agent.channels import identifiers
    from voice_agent.channels.text import TextShell
    from voice_agent.cli.chat_console import ChatConsole
    from voice_agent.cli.check import show
    from voice_agent.service.text_agent import open_texts

    if conversation and not identifiers.is_conversation_id(conversation):
        raise click.BadParameter(f"must be {identifiers.RULE}.", param_hint="--conversation")
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if interactive:
        _enable_line_editing()
    console = ChatConsole()

    def report(problems: list[Problem]) -> None:
        show(problems, path)
        console.notice("The old version stays.")

    listener = console.show_event if events else None
    with (
        asyncio.Runner() as runner,
        open_texts(path, runner, ephemeral=ephemeral, listener=listener, report=report) as agent,
    ):

        def read_line(prompt: str) -> str:
            line = input(prompt)
            if watch:
                runner.run(agent.reloader.refresh())
            return line

        name = conversation or identifiers.new_conversation_id()
        TextShell(agent.texts, name, console, read_line=read_line, interactive=interactive).run(runner)


def _enable_line_editing() -> None:
    with contextlib.suppress(ImportError):  # not on Windows
        import readline  # noqa: F401 - importing it is what enables history and editing of input()
