"""``voice-agent prompt``: what a model is really given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from voice_agent.diagnostics import RemediableError
from voice_agent.telemetry.logging import configure

if TYPE_CHECKING:
    from rich.console import Console

    from voice_agent.authoring.prompts import TurnPrompts
    from voice_agent.dialogue.model_call import ModelCallRecord
    from voice_agent.llm.protocol import Message, ToolSpec

_COLOURS = {"system": "cyan", "user": "bold", "assistant": "green", "tool": "magenta"}


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--say", "lines", multiple=True, required=True, metavar="TEXT", help="What the caller says; repeatable.")
@click.option("--turn", type=click.IntRange(min=1), help="Number of the line to look at; the last by default.")
@click.option("--call", type=click.IntRange(min=1), default=1, show_default=True, help="Which model call of the turn.")
@click.option("--channel", default="websocket", show_default=True, help="Channel the caller comes in by.")
@click.option(
    "--live", is_flag=True, help="Let the project's own model carry the conversation on, not the embedded one."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")
def prompt(
    path: Path, lines: tuple[str, ...], turn: int | None, call: int, channel: str, live: bool, as_json: bool
) -> None:
    """Show the exact prompt (messages and tools) of one model call of a conversation with the project in PATH."""
    configure("error")
    number = len(lines) if turn is None else turn
    if number > len(lines):
        raise click.BadParameter(f"only {len(lines)} lines are said.", param_hint="--turn")
    turns = asyncio.run(_talk(path, lines[:number], channel, live))
    shown = turns[number]
    if not shown.calls:
        raise RemediableError(
            f"Turn {number} made no model call: the framework answered {shown.reply!r} by itself.",
            "Look at another turn, or say something else.",
        )
    if call > len(shown.calls):
        raise click.BadParameter(f"turn {number} made {len(shown.calls)} model calls.", param_hint="--call")
    if as_json:
        from voice_agent.authoring import prompts

        click.echo(json.dumps(prompts.as_json(shown, shown.calls[call - 1]), ensure_ascii=False, indent=2))
    else:
        _show(turns, shown, call)


async def _talk(path: Path, lines: tuple[str, ...], channel: str, live: bool) -> list[TurnPrompts]:
    from voice_agent.authoring.prompts import talk
    from voice_agent.config import LlmOptions
    from voice_agent.config_files import load_config
    from voice_agent.llm.factory import build_model

    config = load_config(path)
    model = build_model(config.integrations.llm if live else LlmOptions())
    try:
        await model.warm_up()
        return await talk(config, model, lines, channel)
    finally:
        await model.aclose()


def _show(turns: list[TurnPrompts], shown: TurnPrompts, call: int) -> None:
    from rich.console import Console
    from rich.text import Text

    from voice_agent.authoring.prompts import tool_tokens
    from voice_agent.dialogue.prompt_sections import message_tokens

    console, record = Console(highlight=False, soft_wrap=True), shown.calls[call - 1]
    for turn in turns[: shown.number + 1]:
        console.print(Text.assemble((f"{turn.number:>3} ", "dim"), (turn.utterance, "bold")))
        if turn is not shown and turn.reply:
            console.print(Text.assemble("    ", (turn.reply, "dim")))
    console.print()
    request = record.request
    for index, message in enumerate(request.messages):
        if index == 0 and record.sections:
            _sections(console, record)
        else:
            _message(console, message, message_tokens(message))
    _tools(console, request.tools, tool_tokens(request.tools))
    total = sum(map(message_tokens, request.messages)) + tool_tokens(request.tools)
    # The purpose of most calls is the turn itself, which goes without saying.
    purpose = "" if record.purpose == "turn" else f" ({record.purpose})"
    which = f"model call {call} of {len(shown.calls)} of turn {shown.number}{purpose}"
    console.print(Text(f"about {total} tokens in all; {which}", style="bold"))
    if len(shown.calls) > 1:
        console.print(Text("Other calls of this turn: --call N.", style="dim"))


def _rule(console: Console, title: str, tokens: int, colour: str, note: str = "") -> None:
    from rich.text import Text

    console.print(Text.assemble((f"── {title} ", f"bold {colour}"), (f"about {tokens} tokens {note}".rstrip(), "dim")))


def _sections(console: Console, record: ModelCallRecord) -> None:
    """Show the system message part by part; together the parts are the message, letter for letter."""
    from rich.text import Text

    for section in record.sections:
        note = f"({section.omitted} characters cut)" if section.omitted else ""
        _rule(console, f"system: {section.key}", section.tokens, _COLOURS["system"], note)
        console.print(Text(section.text), "", sep="\n")


def _message(console: Console, message: Message, tokens: int) -> None:
    from rich.text import Text

    name = f"{message.role}: {message.name}" if message.name else message.role
    _rule(console, name, tokens, _COLOURS[message.role])
    if message.content:
        console.print(Text(message.content))
    for call in message.tool_calls:
        console.print(Text.assemble("→ ", (call.name, "bold"), f" {call.arguments}"))
    console.print()


def _tools(console: Console, tools: Sequence[ToolSpec], tokens: int) -> None:
    from rich.text import Text

    _rule(console, f"tools: {len(tools)}", tokens, "yellow")
    for tool in tools:
        arguments = ", ".join(tool.parameters.get("properties", {}))
        console.print(Text.assemble((f"{tool.name}({arguments})", "yellow"), "  ", (tool.description, "dim")))
    console.print()
