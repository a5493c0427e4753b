"""The command line. Each command is imported when it is called, so that ``--help`` is quick."""

from __future__ import annotations

import importlib
from typing import Any

import click

from voice_agent import __version__
from voice_agent.diagnostics import ProjectError, RemediableError

FAILED = 2
"""Exit status of anything that the operator has to mend first."""

_COMMANDS = {
    "run": ("voice_agent.cli.run:run", "Start the service and answer calls."),
    "chat": ("voice_agent.cli.chat:chat", "Talk to the agent by text, in this terminal."),
    "talk": ("voice_agent.cli.talk:talk", "Talk to the agent by this machine's microphone and speaker."),
    "call": ("voice_agent.caller.command:call", "Place a simulated call to a running agent."),
    "mcp": ("voice_agent.cli.mcp:mcp", "Offer the agent and its tools to programs that speak MCP."),
    "new": ("voice_agent.cli.new:new", "Make a new project, or a new skill in one."),
    "learn": ("voice_agent.cli.learn:learn", "Learn documents for the agent to answer from."),
    "forget": ("voice_agent.cli.learn:forget", "Delete what was said, for good."),
    "schema": ("voice_agent.cli.schema:schema", "Print JSON schemas of a project's files, for editors."),
    "test": ("voice_agent.cli.test:test", "Play the conversation tests of a project."),
    "prompt": ("voice_agent.cli.prompt:prompt", "Show exactly what a model is given in a turn."),
    "check": ("voice_agent.cli.check:check", "Report every problem of a project."),
}


class _LazyGroup(click.Group):
    """Knows its commands by name and summary; faults with a remedy become one calm line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (RemediableError, ProjectError) as fault:
            show_fault(fault)
        return ctx.exit(FAILED)


def show_error(message: str, remedy: str = "") -> None:
    """Write one line to standard error."""
    click.echo(f"{click.style('error:', fg='red', bold=True)} {message} {remedy}".rstrip(), err=True)


def show_fault(fault: RemediableError | ProjectError) -> None:
    """Write what the operator has to mend to standard error."""
    if isinstance(fault, ProjectError):
        show_problems(fault)
    else:
        show_error(fault.message, fault.remedy)


def show_problems(fault: ProjectError) -> None:
    for problem in fault.problems:
        click.secho(str(problem), fg="red" if problem.severity.value == "error" else "yellow", err=True)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A voice agent that picks up, greets first, listens, acts, speaks, and yields when interrupted.",
)
@click.version_option(__version__, "--version", prog_name="voice-agent")
def cli() -> None:
    pass


def main() -> None:
    """Entry point of the command ``voice-agent``."""
    cli(prog_name="voice-agent")
