"""``voice-agent test``: plays the conversation tests of a project."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AbstractContextManager, aclosing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from voice_agent.diagnostics import RemediableError
from voice_agent.telemetry.logging import configure

if TYPE_CHECKING:
    from voice_agent.authoring.player import Outcome
    from voice_agent.authoring.suite import Suite

FAILED = 1


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--live", is_flag=True, help="Let the project's own model answer, also where a test has a script.")
@click.option("--filter", "wanted", metavar="TEXT", default="", help="Only tests with TEXT in name, file or tags.")
@click.option("--json", "as_json", is_flag=True, help="Results as JSON on standard output.")
@click.option("--junit", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML too.")
@click.option("--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="error")
@click.pass_context
def test(
    ctx: click.Context,
    paths: tuple[Path, ...],
    live: bool,
    wanted: str,
    as_json: bool,
    junit: Path | None,
    log_level: str,
) -> None:
    """Play the conversation tests of the projects, folders or files in PATHS; of this directory by default.

    Ends with 0 when all pass, 1 when one fails, 2 when something cannot be read.
    """
    configure(log_level).addFilter(_is_unexpected)
    from voice_agent.authoring.player import Status
    from voice_agent.authoring.suite import find_suites

    suites = find_suites(paths or (Path(),), wanted=wanted, live=live)
    if not any(suite.tests for suite in suites):
        what = f"No test matches {wanted!r}." if wanted else "There are no conversation tests here."
        raise RemediableError(what, "They live in tests/*.yml or conversations/*.yml; see `voice-agent new`.")
    outcomes = asyncio.run(_play(suites, live, quiet=as_json))
    if junit is not None:
        _write_junit(junit, outcomes)
    if as_json:
        from voice_agent.authoring import reports

        click.echo(json.dumps(reports.as_json(outcomes), ensure_ascii=False, indent=2, default=str))
    if any(outcome.status is Status.FAILED for outcome in outcomes):
        ctx.exit(FAILED)


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Whether a log record is news: that a stub fails as the test tells it to is none."""
    from voice_agent.authoring.stage import StubFailure

    return record.exc_info is None or not isinstance(record.exc_info[1], StubFailure)


def _write_junit(path: Path, outcomes: list[Outcome]) -> None:
    from voice_agent.authoring import reports

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(reports.as_junit(outcomes))
    except OSError as fault:
        raise RemediableError(f"{path} cannot be written: {fault.strerror}.", "Name another file.") from None


async def _play(suites: list[Suite], live: bool, *, quiet: bool) -> list[Outcome]:
    from voice_agent.authoring.suite import run_suites

    outcomes: list[Outcome] = []
    if quiet:
        async with aclosing(run_suites(suites, live=live)) as results:
            return [outcome async for outcome in results]
    from voice_agent.cli.test_display import Display

    display = Display(sum(len(suite.tests) for suite in suites))
    shown: AbstractContextManager[Any] = display if display.is_live else nullcontext()
    with shown:
        async with aclosing(run_suites(suites, live=live, started=display.begin)) as results:
            async for outcome in results:
                outcomes.append(outcome)
                display.show(outcome)
    display.summary(outcomes)
    return outcomes
