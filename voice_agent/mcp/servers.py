"""All servers of a project: started with the service, closed with it, and where the dialogue finds their tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from voice_agent.config import McpServerOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.dialogue.tools import Tool
from voice_agent.mcp.connection import Connection
from voice_agent.mcp.transports import quieten

log = logging.getLogger(__name__)


class McpServers:
    """Implements `voice_agent.dialogue.remote_tools.ToolServers`. Use `build_servers`."""

    def __init__(self, connections: Mapping[str, Connection]) -> None:
        self._connections = dict(connections)

    def find(self, server: str, tool: str) -> Tool | None:
        connection = self._connections.get(server)
        return None if connection is None else connection.tools.get(tool)

    def is_connected(self, server: str) -> bool:
        connection = self._connections.get(server)
        return connection is not None and connection.is_connected

    def listed(self, server: str) -> Mapping[str, Tool]:
        """Return the tools that a server lists now; none while it is away."""
        connection = self._connections.get(server)
        return {} if connection is None else connection.tools

    def failure(self, server: str) -> str:
        """Return why a server cannot be reached; empty if it can, or has not been tried."""
        connection = self._connections.get(server)
        return "" if connection is None or connection.is_connected else connection.failure

    async def start(self) -> None:
        """Connect to all of them at once. Returns when each is connected or has failed once, which has a limit."""
        for connection in self._connections.values():
            connection.start()
        await asyncio.gather(*(connection.tried() for connection in self._connections.values()))

    async def aclose(self) -> None:
        """End all connections, and the programs behind them, at once and within a limit. Idempotent."""
        await asyncio.gather(*(connection.aclose() for connection in self._connections.values()))


def build_servers(servers: Mapping[str, McpServerOptions], root: Path) -> McpServers:
    """Build the connections that ``integrations.yml`` names. Starts nothing.

    Raises:
        RemediableError: The package that they need is missing.
    """
    if servers:
        if find_spec("mcp") is None:
            raise RemediableError(
                "`mcp_servers` needs a package that is not installed.", 'Install it: pip install -e ".[mcp]"'
            )
        quieten()
    return McpServers({name: Connection(name, options, root) for name, options in servers.items()})
