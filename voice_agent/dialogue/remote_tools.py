"""Tools that a skill imports from servers, ``mcp/<server>:<tool>``: they come and go while conversations are on.

A project is loaded before any server is asked, and outlives connections. So a skill holds a stand-in, and whoever
offers or runs it asks for the tool as it is at that moment::

    server    ── connected ──│     lost     │── connected ──
    current() ── the tool ───│ None ────────│── the tool, perhaps described anew ──
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from voice_agent.dialogue.tools import Tool, ToolFailed, ToolResult

PREFIX = "mcp/"
_IMPORT = re.compile(r"mcp/([A-Za-z][A-Za-z0-9_-]*):([A-Za-z0-9_./-]{1,128})")
_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]")
AWAY = "It cannot be reached at present. Say so calmly; do not guess what it would say."


class ToolServers(Protocol):
    """Where such tools come from."""

    def find(self, server: str, tool: str) -> Tool | None:
        """Return ``tool`` as its server lists it now; None while the server is away or does not list it."""

    def is_connected(self, server: str) -> bool:
        """Return whether the server can be asked now."""


class NoServers:
    """Nothing is connected."""

    def find(self, server: str, tool: str) -> Tool | None:
        return None

    def is_connected(self, server: str) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RemoteName:
    """Which tool of which server."""

    server: str
    tool: str

    @property
    def bare(self) -> str:
        """The name that skills and models use: models take no dots or slashes in one."""
        return _OUTSIDE.sub("_", self.tool)[:64]

    def __str__(self) -> str:
        return f"{PREFIX}{self.server}:{self.tool}"


def parse_import(name: str) -> RemoteName | None:
    """Return what ``mcp/<server>:<tool>`` names; None if it is written in another way."""
    found = _IMPORT.fullmatch(name)
    return None if found is None else RemoteName(found[1], found[2])


def bare_name(name: str) -> str:
    """Return the name under which a skill knows a tool, however it is written."""
    remote = parse_import(name)
    return name if remote is None else remote.bare


@dataclass(frozen=True, slots=True)
class RemoteTool(Tool):
    """Stands for a server's tool in a skill. Run while the server is away, it fails with that as the reason.

    Attributes:
        line: Where the skill imports it.
    """

    remote: RemoteName = RemoteName("", "")
    servers: ToolServers = field(default_factory=NoServers)
    imported_on: int | None = None

    @property
    def line(self) -> int | None:
        return self.imported_on

    def current(self) -> Tool | None:
        found = self.servers.find(self.remote.server, self.remote.tool)
        if found is None:
            return None
        return replace(found, name=self.name, interruptible=self.interruptible)


def stand_in(name: RemoteName, servers: ToolServers, line: int) -> RemoteTool:
    """Return what a skill holds for the server's tool ``name``."""

    async def away(**arguments: Any) -> ToolResult:
        raise ToolFailed(f"{name.bare}: {AWAY}", unreachable=True)

    nothing: Mapping[str, Any] = {"type": "object", "properties": {}}
    return RemoteTool(name.bare, "", away, nothing, remote=name, servers=servers, imported_on=line)
