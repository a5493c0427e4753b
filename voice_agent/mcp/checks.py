"""What can be said of a project's servers before it runs: without starting anything, and by asking them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from voice_agent.config_files import ProjectConfig
from voice_agent.diagnostics import Problem, Severity, did_you_mean
from voice_agent.dialogue.project import Project, Skill
from voice_agent.dialogue.remote_tools import RemoteTool
from voice_agent.mcp.process import find_command
from voice_agent.mcp.servers import McpServers, build_servers
from voice_agent.mcp.transports import environment

SETTINGS = "integrations.yml"


def check_commands(config: ProjectConfig) -> list[Problem]:
    """Return the servers whose programs are not on this machine."""
    found = []
    for name, server in config.integrations.mcp_servers.items():
        if server.transport != "stdio" or server.command is None:
            continue
        folder = (config.root / (server.directory or ".")).resolve()
        if not folder.is_dir():
            message = f"The MCP server {name!r} is to be started in {server.directory!r}, which is no folder."
            found.append(_problem("mcp.no_directory", message, "Name one within the project.", config))
        elif find_command(server.command, environment(server), folder) is None:
            message = f"The MCP server {name!r} needs the program {server.command!r}, which is not on this machine."
            found.append(_problem("mcp.no_command", message, "Install it; until then its tools are missing.", config))
    return found


def note_unasked(config: ProjectConfig, project: Project) -> list[Problem]:
    """Return a note for each server whose tools skills import, since nobody has asked it for them."""
    used = {tool.remote.server for _, tool in _remote_tools(project)}
    return [
        Problem(
            "mcp.not_asked",
            f"Whether the MCP server {name!r} has the tools that skills import is not known: it is not started here.",
            "Ask it: voice-agent check --online.",
            config.root / SETTINGS,
            None,
            Severity.NOTE,
        )
        for name in config.integrations.mcp_servers
        if name in used
    ]


def ask_servers(config: ProjectConfig, project: Project) -> list[Problem]:
    """Start or connect to every server, and check the imports of skills against what they list."""
    return asyncio.run(_ask(config, project))


async def _ask(config: ProjectConfig, project: Project) -> list[Problem]:
    servers = build_servers(config.integrations.mcp_servers, config.root)
    try:
        await servers.start()
        return [*_unreachable(config, servers), *_missing(_remote_tools(project), servers)]
    finally:
        await servers.aclose()


def _unreachable(config: ProjectConfig, servers: McpServers) -> Iterator[Problem]:
    for name in config.integrations.mcp_servers:
        if not servers.is_connected(name):
            message = f"The MCP server {name!r} cannot be reached: {servers.failure(name)}."
            yield _problem("mcp.unreachable", message, "Start it; until then its tools are missing.", config)


def _missing(tools: Iterable[tuple[Skill, RemoteTool]], servers: McpServers) -> Iterator[Problem]:
    for skill, tool in tools:
        server = tool.remote.server
        if not servers.is_connected(server):
            continue
        listed = servers.listed(server)
        if tool.remote.tool not in listed:
            message = f"The MCP server {server!r} has no tool {tool.remote.tool!r}."
            remedy = did_you_mean(tool.remote.tool, listed) or f"It has: {', '.join(sorted(listed)[:20]) or 'none'}."
            yield Problem("skill.unknown_mcp_tool", message, remedy, skill.path, tool.line)


def _remote_tools(project: Project) -> Iterator[tuple[Skill, RemoteTool]]:
    for skill in project.skills.values():
        for tool in skill.tools.values():
            if isinstance(tool, RemoteTool):
                yield skill, tool


def _problem(id: str, message: str, remedy: str, config: ProjectConfig) -> Problem:
    return Problem(id, message, remedy, config.root / SETTINGS, None, Severity.WARNING)
