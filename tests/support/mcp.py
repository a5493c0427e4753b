"""MCP servers for tests, and connections to them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from voice_agent.config import McpServerOptions
from voice_agent.mcp.connection import Connection
from voice_agent.mcp.servers import McpServers, build_servers

PROGRAM = Path(__file__).parents[1] / "fakes" / "mcp_server.py"
PATIENCE_S = 60.0
"""Starting Python with the SDK takes seconds on a busy machine."""


def fake_options(**options: Any) -> McpServerOptions:
    """Return the options of the fake server as a program."""
    given = {"command": sys.executable, "args": (str(PROGRAM),), "connect_timeout_s": PATIENCE_S}
    return McpServerOptions.model_validate({**given, **options})


def connection(servers: McpServers, name: str = "fake") -> Connection:
    return servers._connections[name]


@asynccontextmanager
async def connected(root: Path, **servers: McpServerOptions) -> AsyncIterator[McpServers]:
    """Connect to servers, and leave them."""
    built = build_servers(servers, root)
    try:
        await built.start()
        yield built
    finally:
        await built.aclose()


async def until(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - what it waits for is another process
            await asyncio.sleep(0.02)


async def noted(fake: Connection, word: str, times: int = 1) -> None:
    """Wait until the fake server has noted a word so often: ``begun``, ``cancelled`` or ``done`` of its slow tool."""
    async with asyncio.timeout(PATIENCE_S):
        while (await fake.call("notes", {})).llm_response["notes"].count(word) < times:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def serving(how: str, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the fake server over HTTP (``http`` or ``sse``) until left."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), how, str(port)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: _listens(port))
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not yet waited for does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
