"""``voice-agent new``: a project or a skill to start from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from voice_agent.diagnostics import RemediableError

SKILL = "skill"


@click.command()
@click.argument("name", metavar="NAME | skill ID")
@click.argument("skill_id", metavar="", required=False)
@click.option(
    "--path",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder for the new project; for a skill, its project.",
)
def new(name: str, skill_id: str | None, path: Path) -> None:
    """Make a new project, or with `new skill ID` a new skill in a project. Never overwrites anything."""
    from voice_agent.authoring import schemas, templates

    if name == SKILL:
        if skill_id is None:
            raise click.UsageError("A skill needs an id: voice-agent new skill ID.")
        written, then = _attempt(lambda: templates.new_skill(path, skill_id)), f"voice-agent test {_folder(path)}"
    elif skill_id is not None:
        raise click.UsageError(f"Did you mean: voice-agent new skill {skill_id}?")
    else:
        if Path(name).name != name:
            raise RemediableError(f"{name!r} is a path.", "Give the name alone, and the folder it goes to with --path.")
        folder = path / name
        written = _attempt(lambda: [*templates.new_project(folder), *schemas.write(folder / templates.SCHEMAS)])
        then = f"voice-agent test {_folder(folder)} && voice-agent chat {_folder(folder)}"
    for file in written:
        click.echo(f"  {click.style('+', fg='green')} {file}")
    click.echo(f"\nNext: {then}".rstrip())


def _attempt(work: Callable[[], list[Path]]) -> list[Path]:
    try:
        return work()
    except OSError as fault:
        raise RemediableError(
            f"{fault.filename} cannot be written: {fault.strerror}.", "Choose another place."
        ) from None


def _folder(path: Path) -> str:
    return "" if path == Path() else str(path)
