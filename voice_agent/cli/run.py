"""``voice-agent run``: the service in the foreground."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click

from voice_agent.cli import show_fault
from voice_agent.cli.progress import progress_bars
from voice_agent.config import ServerOptions
from voice_agent.diagnostics import ProjectError, RemediableError
from voice_agent.telemetry.logging import configure

log = logging.getLogger(__name__)

LEAVE_S = 3.0
"""How long what was cancelled at the end may take, once everything of ours has been closed."""
LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--host", help="Address to listen on, instead of server.host.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on, instead of server.port; 0 takes any.")
@click.option("--sip-port", type=click.IntRange(0, 65_535), help="Answer calls by SIP at this port; 0 takes any.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--reload", "watch", is_flag=True, help="Follow changes of the project's files while calls go on.")
@click.option("--json-logs", is_flag=True, help="One JSON object per log line.")
def run(
    path: Path,
    host: str | None,
    port: int | None,
    sip_port: int | None,
    log_level: str,
    watch: bool,
    json_logs: bool,
) -> None:
    """Start the service of the project in PATH and answer calls until stopped.

    SIGHUP loads the project anew; calls go on, and their next turns use the new version.
    """
    configure(log_level, as_json=json_logs)
    from voice_agent.security import api_key
    from voice_agent.server import serve
    from voice_agent.service.service import build_service

    with progress_bars(quiet=json_logs) as progress:
        service = build_service(path, progress=progress, watch=watch, sip_port=sip_port)
        options = _overridden(service.config.integrations.server, host, port)
        api_key(options)
        for problem in service.agent.problems:
            log.warning("%s", problem)

        port_used = 0

        def listening(actual: int) -> None:
            nonlocal port_used
            port_used = actual
            log.info("listening on %s", _address(options.host, actual))

        def ready() -> None:
            freeze_heap()
            if service.channels.webrtc.enabled:
                host = "127.0.0.1" if options.host in ("0.0.0.0", "::") else options.host
                log.info("open %s/ in a browser and talk to it", _address(host, port_used))

        channels = service.channels
        run_loop(serve(service, options, channels=channels, listening=listening, ready=ready))


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _overridden(options: ServerOptions, host: str | None, port: int | None) -> ServerOptions:
    given = {"host": host, "port": port}
    return options.model_copy(update={name: value for name, value in given.items() if value is not None})


def freeze_heap() -> None:
    """Tell the garbage collector that what is loaded by now stays for ever.

    A full collection over models' and libraries' objects holds up every call for tenths of a second.
    """
    gc.collect()
    gc.freeze()


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` on the fastest event loop there is. What it left behind cannot keep the process alive."""
    factory = None
    if sys.platform != "win32":
        import uvloop

        factory = uvloop.new_event_loop
    runner, status = asyncio.Runner(loop_factory=factory), 1
    cause: RemediableError | ProjectError | None = None
    try:
        runner.run(main)
        status = 0
    except (RemediableError, ProjectError) as fault:
        cause, status = fault, 2
        raise
    finally:
        # Closing waits for every task and thread, and some tool's may ignore that it was cancelled.
        timer = threading.Timer(LEAVE_S, _leave, (status, cause))
        timer.daemon = True
        timer.start()
        runner.close()
        timer.cancel()


def _leave(status: int, cause: RemediableError | ProjectError | None) -> None:
    log.error("something that was cancelled did not end within %.0f s; leaving without it", LEAVE_S)
    if cause is not None:
        # Nobody comes back to tell it.
        show_fault(cause)
    os._exit(status)
