"""``voice-agent mcp``: the agent as a server of the Model Context Protocol."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from voice_agent.diagnostics import RemediableError
from voice_agent.telemetry.logging import configure

LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", help="Address to listen on, with --http; 127.0.0.1 by default.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on, with --http; 8090 by default.")
@click.option("--conversation", metavar="ID", help="Name of the conversation, without --http; a new one by default.")
@click.option("--ephemeral", is_flag=True, help="Keep nothing of what is said; known conversations are not continued.")
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True)
def mcp(
    path: Path,
    over_http: bool,
    host: str | None,
    port: int | None,
    conversation: str | None,
    ephemeral: bool,
    log_level: str,
) -> None:
    """Offer the agent of the project in PATH to programs that speak MCP: `talk`, and the tools that are open."""
    from voice_agent.channels import identifiers

    if conversation and not identifiers.is_conversation_id(conversation):
        raise click.BadParameter(f"must be {identifiers.RULE}.", param_hint="--conversation")
    if not over_http and (host or port is not None):
        raise click.UsageError("--host and --port are for --http.")
    if find_spec("mcp") is None:
        message = "`voice-agent mcp` needs a package that is not installed."
        raise RemediableError(message, 'Install it: pip install -e ".[mcp]"')
    configure(log_level)
    from voice_agent.cli.run import run_loop
    from voice_agent.mcp.transports import quieten
    from voice_agent.mcp_server.serving import PATH, protected_output, serve_http, serve_stdio

    quieten()
    if not over_http:
        with protected_output() as output:
            run_loop(serve_stdio(path, output, conversation_id=conversation, ephemeral=ephemeral))
        return
    from voice_agent.config_files import load_config

    options = load_config(path).integrations.server
    options = options.model_copy(update={"host": host or "127.0.0.1", "port": 8090 if port is None else port})

    def listening(used: int) -> None:
        shown = f"[{options.host}]" if ":" in options.host else options.host
        click.echo(f"listening on http://{shown}:{used}{PATH}", err=True)

    run_loop(serve_http(path, options, ephemeral=ephemeral, listening=listening))
