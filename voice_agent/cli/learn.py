"""``voice-agent learn`` and ``voice-agent forget``: what the agent remembers, from the command line."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from voice_agent.diagnostics import RemediableError
from voice_agent.telemetry.logging import configure

if TYPE_CHECKING:
    from voice_agent.recall.ingest import Report
    from voice_agent.recall.memories import Memories
    from voice_agent.service.recall import RecallKeeper

T = TypeVar("T")
MAX_THREADS = 4
MAX_KINDS = 8
"""Types of skipped files that are named: so many fit into a line."""
NOT_ALL = 1
"""Exit status when some file could not be learnt."""
_PROJECT = click.option(
    "--project", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The project; here."
)


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@_PROJECT
@click.option("--prune", is_flag=True, help="Unlearn what was learnt from PATHS and is not there any more.")
@click.option("--list", "listed", is_flag=True, help="Show what has been learnt.")
@click.pass_context
def learn(ctx: click.Context, paths: tuple[Path, ...], project: Path, prune: bool, listed: bool) -> None:
    """Learn files, and files in folders (markdown, text, HTML, PDF), for the agent to answer from.

    Files that have not changed are left alone. Nothing is fetched from the network.
    """
    configure("warning")
    if not paths and not listed:
        raise click.UsageError("name files or folders to learn, or give --list.")
    if paths:
        report = _with_memories(project, lambda keeper: _learn(keeper.memories, project, paths, prune))
        show_report(report)
        if report.failed:
            ctx.exit(NOT_ALL)
    if listed:
        for source in _with_memories(project, lambda keeper: keeper.memories.library.sources()):
            click.echo(f"{source.name}  {source.passages} passages")


@click.command()
@_PROJECT
@click.option("--conversation", metavar="ID", help="This conversation.")
@click.option("--caller", metavar="USER_ID", help="Every conversation of this caller.")
@click.option("--older-than-days", type=click.FloatRange(0, 36_500), help="What was recalled from before this.")
def forget(project: Path, conversation: str | None, caller: str | None, older_than_days: float | None) -> None:
    """Delete what was said, in the store of conversations and in what is recalled, for good.

    The store forgets by age by itself (store.retention_days): --older-than-days is about recall alone.
    """
    import time

    from voice_agent.recall.index import Forget

    configure("warning")
    if conversation is None and caller is None and older_than_days is None:
        raise click.UsageError("name a --conversation, a --caller or an age (--older-than-days).")
    moment = None if older_than_days is None else time.time() - older_than_days * 86_400
    what = Forget(conversation, caller, moment)
    done = _with_memories(project, lambda keeper: keeper.forget(what), stored=True)
    click.echo(f"{done['conversations']} conversations and {done['exchanges']} recalled exchanges were deleted.")


def _with_memories(project: Path, work: Callable[[RecallKeeper], Coroutine[Any, Any, T]], *, stored: bool = False) -> T:
    from voice_agent.config_files import load_config
    from voice_agent.dialogue.agent_id import keep_id
    from voice_agent.dialogue.events import utc_now
    from voice_agent.recall.embedding import EmbeddingFailed
    from voice_agent.recall.index import IndexUnavailable
    from voice_agent.recall.opening import configured_memories
    from voice_agent.service.engines import usable_cores
    from voice_agent.service.recall import RecallKeeper
    from voice_agent.store.opening import configured_store
    from voice_agent.store.protocol import StoreUnavailable

    config = load_config(project)
    if not config.agent.agent.id:
        # Files are called after the agent's id: it is kept now, so that the service finds what is learnt here.
        keep_id(config.root / "agent.yml", utc_now())
        config = load_config(project)
    if config.integrations.recall.declarative.enabled is False and not stored:
        raise RemediableError("Documents are not recalled here.", "Remove recall.declarative.enabled: false.")

    async def run() -> T:
        store = configured_store(config)
        memories = configured_memories(config, store, threads=min(usable_cores(), MAX_THREADS))
        keeper = RecallKeeper(memories, store, _no_project, config.integrations.store.retention_days)
        try:
            if stored:
                await store.open()
            await memories.open(wanted=not stored)
            return await work(keeper)
        except (IndexUnavailable, EmbeddingFailed, StoreUnavailable) as fault:
            raise RemediableError(f"{fault}.", "What was done up to then is kept; try again.") from fault
        finally:
            await memories.aclose()
            if stored:
                await store.aclose()

    return asyncio.run(run())


def _no_project() -> Any:
    raise AssertionError("no calls are taken here")


async def _learn(memories: Memories, project: Path, paths: tuple[Path, ...], prune: bool) -> Report:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from voice_agent.recall.ingest import learn_files

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        anew = bars.add_task("vectors of a new model", total=None, visible=False)
        await memories.library.fill(lambda done, of: bars.update(anew, completed=done, total=of, visible=True))
        task = bars.add_task("learning", total=None)

        def show(name: str, done: int, of: int) -> None:
            bars.update(task, description=name[-60:] or "learnt", completed=done, total=of)

        return await learn_files(memories.library, project, list(paths), prune=prune, progress=show)


def show_report(report: Report) -> None:
    """Print what came of it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(show_header=False, box=None)
    for title, count in (
        ("learnt", f"{len(report.learnt)} texts, {report.passages} passages"),
        ("unchanged", str(len(report.unchanged))),
        ("removed", str(len(report.removed))),
        ("failed", str(len(report.failed))),
    ):
        table.add_row(title, count)
    console.print(table)
    if report.skipped:
        # Not cut by the width of a terminal: it is read by scripts too.
        console.print(Text(_skipped(report.skipped)), soft_wrap=True)
    for name, reason in report.failed:
        console.print(Text.assemble((f"{name}: ", "red"), reason))


def _skipped(counts: Counter[str]) -> str:
    """Return in one line how many files were of other types, and of which."""
    kinds = [
        f"{count} {''.join(c if c.isprintable() else '?' for c in suffix[:20]) or 'without a suffix'}"
        for suffix, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    if len(kinds) > MAX_KINDS:
        kinds[MAX_KINDS:] = ["others"]
    total = counts.total()
    return f"skipped {total} file{'s' * (total != 1)} of types that are not learnt: {', '.join(kinds)}"
