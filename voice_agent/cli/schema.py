"""``voice-agent schema``: JSON schemas of a project's files, for editors."""

from __future__ import annotations

from pathlib import Path

import click

from voice_agent.diagnostics import RemediableError, did_you_mean


@click.command()
@click.argument("name", required=False)
@click.option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all of them to DIR.",
)
def schema(name: str | None, folder: Path | None) -> None:
    """Print the JSON schema of one kind of file, or write all of them to a folder. Without NAME, list the kinds.

    In a YAML file the line `# yaml-language-server: $schema=PATH` tells editors which one holds.
    """
    from voice_agent.authoring import schemas

    if folder is not None:
        try:
            for path in schemas.write(folder):
                click.echo(path)
        except OSError as fault:
            raise RemediableError(
                f"{fault.filename} cannot be written: {fault.strerror}.", "Choose another folder."
            ) from None
    elif name is None:
        width = max(map(len, schemas.KINDS))
        for known, kind in schemas.KINDS.items():
            click.echo(f"{known:<{width}}  {kind.title}")
    elif name in schemas.KINDS:
        click.echo(schemas.as_text(name), nl=False)
    else:
        near = did_you_mean(name, schemas.KINDS) or f"Known: {', '.join(schemas.KINDS)}."
        raise click.BadParameter(f"There is no schema {name!r}. {near}", param_hint="NAME")
