"""``voice-agent check``: every problem of a project, at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from voice_agent.diagnostics import Problem, ProjectError, RemediableError, Severity

BROKEN = 1


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_context
def check(ctx: click.Context, path: Path) -> None:
    """Report every problem of the project in PATH. Ends with 0 when there is nothing worse than a warning."""
    problems = find_problems(path)
    for problem in sorted(problems, key=lambda p: (p.severity is not Severity.ERROR, str(p.path), p.line or 0)):
        click.secho(str(problem), fg="red" if problem.severity is Severity.ERROR else "yellow")
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    warnings = len(problems) - errors
    if errors:
        click.secho(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}", fg="red", bold=True)
        ctx.exit(BROKEN)
    click.secho(f"no errors, {_count(warnings, 'warning')}" if warnings else "no problems", fg="green")


def find_problems(root: Path) -> list[Problem]:
    """Check settings, skills and the presence of what the engines need. Loads no model."""
    from voice_agent.config_files import load_config
    from voice_agent.dialogue.loader import load_project
    from voice_agent.service.engines import build_engines

    problems: dict[str, Problem] = {}

    def collect(found: tuple[Problem, ...]) -> None:
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
    if config is not None:
        collect(config.problems)
        attempt(lambda: build_engines(config.integrations))
    loaded = attempt(lambda: load_project(root))
    if loaded is not None:
        collect(loaded[1])
    return list(problems.values())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
