"""``voice-agent check``: every problem of a project, at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from voice_agent.diagnostics import Problem, ProjectError, RemediableError, Severity, did_you_mean

if TYPE_CHECKING:
    from rich.text import Text

BROKEN = 1


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Problems as JSON on standard output.")
@click.option("--online", is_flag=True, help="Start or connect to the project's MCP servers, and check their tools.")
@click.option("--explain", metavar="ID", help="Say what a problem id means and how to mend it.")
@click.pass_context
def check(ctx: click.Context, path: Path, as_json: bool, online: bool, explain: str | None) -> None:
    """Report every problem of the project in PATH. Ends with 0 when there is nothing worse than a warning."""
    if explain is not None:
        _explain(explain)
        return
    problems = sorted(
        find_problems(path, online=online), key=lambda p: (str(p.path or ""), p.line or 0, p.id, p.message)
    )
    if as_json:
        click.echo(json.dumps([_as_json(problem, path) for problem in problems], ensure_ascii=False, indent=2))
    else:
        show(problems, path)
    if any(problem.severity is Severity.ERROR for problem in problems):
        ctx.exit(BROKEN)


def find_problems(root: Path, *, online: bool = False) -> list[Problem]:
    """Check settings, skills, conversation tests, and that what the engines need is there. Loads no model.

    Args:
        online: Ask the project's MCP servers; nothing is started or connected to otherwise.
    """
    from voice_agent.authoring.conversation_reader import find_files, read_tests
    from voice_agent.config_files import load_config
    from voice_agent.dialogue.agent_checks import check_agent
    from voice_agent.dialogue.loader import load_project
    from voice_agent.mcp.checks import ask_servers, check_commands, note_unasked
    from voice_agent.service.engines import build_engines
    from voice_agent.speech.models import find_piper_voice, find_whisper_model

    problems: dict[str, Problem] = {}

    def collect(found: list[Problem] | tuple[Problem, ...]) -> None:
        problems.update({str(problem): problem for problem in found})

    def attempt(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except ProjectError as fault:
            collect(fault.problems)
        except RemediableError as fault:
            collect((Problem("engine.unavailable", fault.message, fault.remedy),))
        return None

    config = attempt(lambda: load_config(root))
    if any(problem.id == "project.missing" for problem in problems.values()):
        return list(problems.values())
    if config is not None:
        collect(config.problems)
        attempt(lambda: build_engines(config.integrations))
        if config.integrations.channels.websocket.enabled:
            attempt(lambda: find_whisper_model(config.integrations.speech.stt.model))
            attempt(lambda: find_piper_voice(config.integrations.speech.tts.voice))
    loaded = attempt(lambda: load_project(root, settings=config.plugins if config is not None else None))
    if loaded is not None:
        collect(loaded[1])
        if config is not None:
            collect(check_agent(config, loaded[0]))
            collect(check_commands(config))
            if online:
                collect(attempt(lambda: ask_servers(config, loaded[0])) or [])
            else:
                collect(note_unasked(config, loaded[0]))
    tests: list[Problem] = []
    for file in find_files(root):
        read_tests(file, tests)
    collect(tests)
    return list(problems.values())


def show(problems: list[Problem], root: Path) -> None:
    """Print problems by file, each with its line and a pointer to what is wrong in it."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    file: str | None = None
    for problem in problems:
        where = _place(problem, root)
        if where != file:
            file = where
            console.print(f"[bold underline]{_escaped(where)}[/]" if where else "[bold]The project[/]")
        for line in _described(problem, where):
            console.print(line)
        console.print()
    numbers = {severity: sum(problem.severity is severity for problem in problems) for severity in Severity}
    parts = [_count(number, severity.value) for severity, number in numbers.items() if number]
    if numbers[Severity.ERROR]:
        console.print(", ".join(parts), style="bold red")
    else:
        console.print(", ".join(["no errors", *parts]) if parts else "no problems", style="green")


def _described(problem: Problem, where: str) -> list[Text]:
    from rich.text import Text

    from voice_agent.authoring.excerpt import excerpt

    colour = {Severity.ERROR: "red", Severity.WARNING: "yellow"}.get(problem.severity, "cyan")
    place = f"{where}:{problem.line}  " if problem.line else f"{where}  " if where else ""
    lines = [Text.assemble("  ", (problem.severity.value, f"bold {colour}"), " ", (place, "bold"), problem.message)]
    found = excerpt(problem)
    if found is not None:
        number = f"{found.number:>6}"
        before, marked, after = found.text[: found.start], found.text[found.start : found.end], found.text[found.end :]
        lines.append(Text.assemble((f"{number} │ ", "dim"), before, (marked, colour), after))
        caret = " " * found.start + "^" * max(1, found.end - found.start)
        lines.append(Text.assemble((f"{'':>6} │ ", "dim"), (caret, f"bold {colour}")))
    remedy = [(f"{problem.remedy} ", "green")] if problem.remedy else []
    lines.append(Text.assemble("         ", *remedy, (f"[{problem.id}]", "dim")))
    return lines


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _place(problem: Problem, root: Path) -> str:
    if problem.path is None:
        return ""
    try:
        return str(problem.path.resolve().relative_to(root.resolve()))
    except ValueError:
        return str(problem.path)


def _as_json(problem: Problem, root: Path) -> dict[str, Any]:
    return {
        "id": problem.id,
        "severity": problem.severity.value,
        "message": problem.message,
        "remedy": problem.remedy,
        "file": _place(problem, root) or None,
        "line": problem.line,
    }


def _explain(id: str) -> None:
    from voice_agent.authoring.problem_catalogue import CATALOGUE, find

    entry = find(id)
    if entry is None:
        near = did_you_mean(id, (known.id for known in CATALOGUE))
        raise click.BadParameter(f"There is no problem {id!r}. {near}".rstrip(), param_hint="--explain")
    click.secho(id, bold=True)
    click.echo(f"{entry.meaning}\n{entry.remedy}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
