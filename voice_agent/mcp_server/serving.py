"""How clients reach the agent's MCP server: by standard input and output, or by streamable HTTP behind the gate."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from voice_agent.channels import rest
from voice_agent.config import ServerOptions
from voice_agent.connections import PunctualHttp
from voice_agent.dialogue.cancellation import stop
from voice_agent.mcp_server.agent_server import MAX_CLIENTS, AgentServer
from voice_agent.mcp_server.standard_streams import MAX_REQUEST_BYTES, InputLines, OutputLines
from voice_agent.security import Gate, api_key
from voice_agent.service.text_agent import text_agent

log = logging.getLogger(__name__)

PATH = "/mcp"
IDLE_S = 1800.0
"""A client's session is forgotten when nothing was asked in it for this long."""
CLOSE_S = 5.0
SHUTDOWN_S = 3


@contextlib.contextmanager
def protected_output() -> Iterator[Any]:
    """Give standard output to the protocol alone: whatever else writes to it, a library or a tool, goes to the log."""
    private = os.dup(1)
    os.dup2(2, 1)
    sys.stdout.flush()
    try:
        with os.fdopen(private, "w", encoding="utf-8", newline="\n") as output:
            yield output
    finally:
        # What nobody reads any more is not worth an error.
        with contextlib.suppress(OSError):
            sys.stdout.flush()


async def serve_stdio(root: Path, output: Any, *, conversation_id: str | None = None, ephemeral: bool = False) -> None:
    """Serve one client by standard input and ``output`` until it leaves or the process is told to stop.

    Raises:
        ProjectError: Problems in the project's files.
        RemediableError: A missing package, key or model.
    """
    from mcp.server.stdio import stdio_server

    async with text_agent(root, ephemeral=ephemeral) as agent:
        served = AgentServer(agent, conversation_id)

        async def serve() -> None:
            written: Any = OutputLines(output.fileno())
            lines: Any = await InputLines.open(written)
            async with stdio_server(stdin=lines, stdout=written) as (read, write):
                await served.server.run(read, write, served.options)

        await _until_stopped(serve())


async def serve_http(
    root: Path, options: ServerOptions, *, ephemeral: bool = False, listening: Callable[[int], None] | None = None
) -> None:
    """Serve clients by streamable HTTP at `PATH` until told to stop.

    Raises:
        ProjectError: Problems in the project's files.
        RemediableError: No key where one is needed, a port in use, a missing package, key or model.
    """
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from voice_agent.server.listening import listen

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    gate = Gate(api_key(options), options.allowed_origins)
    sock = listen(options.host, options.port)
    async with text_agent(root, ephemeral=ephemeral) as agent:
        served = AgentServer(agent)
        manager = StreamableHTTPSessionManager(
            served.server,
            session_idle_timeout=IDLE_S,
            max_request_body_size=MAX_REQUEST_BYTES,
            max_sessions=MAX_CLIENTS,
        )
        config = uvicorn.Config(
            _behind(gate, manager),
            loop="none",
            lifespan="off",
            http=PunctualHttp,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=2 * MAX_CLIENTS,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        server = Server(config)

        async def serve() -> None:
            async with manager.run():
                if listening:
                    listening(sock.getsockname()[1])
                await server.serve(sockets=[sock])

        await _until_stopped(serve(), lambda: setattr(server, "should_exit", True))


def _behind(gate: Gate, manager: Any) -> Any:
    """Return the ASGI application: the gate first, then sessions of the protocol at `PATH`."""
    from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    # Which tools are open is a matter of a client's own conversation, so only revisions with sessions will do.
    older = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": UNSUPPORTED_PROTOCOL_VERSION,
            "message": "Unsupported protocol version",
            "data": {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": ""},
        },
    }

    async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            return
        if denial := gate(scope):
            await rest.error(denial.status, denial.code, denial.message)(scope, receive, send)
        elif scope["path"] != PATH:
            await rest.error(404, "not_found", f"The MCP server is at {PATH}.")(scope, receive, send)
        else:
            asked = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode("latin-1")
            if asked and asked not in HANDSHAKE_PROTOCOL_VERSIONS:
                older["error"]["data"]["requested"] = asked[:40]  # type: ignore[index]
                await JSONResponse(older, 400)(scope, receive, send)
            else:
                await manager.asgi_app(scope, receive, send)

    return application


async def _until_stopped(serving: Any, ask: Callable[[], None] | None = None) -> None:
    """Run ``serving`` until it ends by itself, or SIGTERM or SIGINT came; it is then asked, and stopped at last."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT) if sys.platform != "win32" else ()
    for number in signals:
        loop.add_signal_handler(number, stopped.set)
    task = loop.create_task(serving, name="mcp.server")
    waiting = loop.create_task(stopped.wait(), name="mcp.server.stop")
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and ask is not None:
            ask()
            await asyncio.wait({task}, timeout=CLOSE_S)
        if not task.done():
            await stop(task, "MCP server", CLOSE_S)
        if task.done() and not task.cancelled():
            task.result()
    finally:
        waiting.cancel()
        for number in signals:
            loop.remove_signal_handler(number)
