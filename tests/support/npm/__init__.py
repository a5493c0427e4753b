"""MCP servers from npm."""

from __future__ import annotations

from pathlib import Path

from tests.support.npm_packages import installed


def server_script(name: str) -> Path:
    """Return the script of the server ``@modelcontextprotocol/server-<name>``, for Node.js. Raises as `installed`."""
    file = f"@modelcontextprotocol/server-{name}/dist/index.js"
    return installed(Path(__file__).parent, "mcp-servers", file, "--omit=optional")
