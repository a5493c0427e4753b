"""The section ``mcp_servers`` of integrations.yml: its spellings, and what is needed to reach each server."""

from __future__ import annotations

from collections.abc import Mapping

from voice_agent.config import Integrations
from voice_agent.yaml_source import LocatedList, LocatedMap, Reader, line_of


def adapt_servers(top: LocatedMap, reader: Reader) -> None:
    """Accept a list of MCP servers with their names in them, and ``type`` for ``transport``."""
    servers = top.get("mcp_servers")
    if servers is None:
        top.pop("mcp_servers", None)
        return
    if isinstance(servers, LocatedList):
        named = LocatedMap()
        named.key_lines = {}
        for item, line in reader.items(servers, "`mcp_servers`"):
            server = reader.mapping(item, "An MCP server", line)
            name = str(server.pop("name", ""))
            named[name], named.key_lines[name] = server, line
        top["mcp_servers"] = servers = named
    for server in servers.values() if isinstance(servers, LocatedMap) else ():
        if isinstance(server, LocatedMap) and "type" in server and "transport" not in server:
            server["transport"], server.key_lines["transport"] = server.pop("type"), server.key_lines["type"]


def check_servers(options: Integrations, top: LocatedMap, environ: Mapping[str, str], reader: Reader) -> None:
    """Check what is needed to reach each MCP server: a program or an address, and a key that is not in the file."""
    for name, server in options.mcp_servers.items():

        def line(*keys: str, name: str = name) -> int | None:
            return line_of(top, ["mcp_servers", name, *keys])

        needed, other = ("command", "url") if server.transport == "stdio" else ("url", "command")
        if getattr(server, needed) is None:
            message = f"The MCP server {name!r} ({server.transport}) has no `{needed}`."
            near = "Set `transport: http`, or add `command`." if needed == "command" and server.url else ""
            reader.error("mcp_incomplete", message, near or f"Add `{needed}`.", line())
        elif getattr(server, other) is not None:
            message = f"`{other}` means nothing to the MCP server {name!r} ({server.transport})."
            reader.warn("mcp_unused", message, "Remove it, or set another `transport`.", line(other))
        for header in server.headers:
            if header.lower() in ("authorization", "cookie", server.key_header.lower()):
                message = f"The MCP server {name!r} has a key among its `headers`."
                reader.error("mcp_key", message, "Name its variable with `key_env`.", line("headers"))
        for variable, key in [(server.key_env, "key_env"), *((variable, "pass_env") for variable in server.pass_env)]:
            if variable and not environ.get(variable):
                message = f"What the MCP server {name!r} needs is missing: {variable} is not set."
                reader.error("missing_key", message, f"Set {variable} in the environment.", line(key))
