"""Servers of tools that speak the Model Context Protocol (MCP)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from voice_agent.config.options import Options, Seconds

ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=60)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]


class McpServerOptions(Options):
    """One server of tools. Skills import from it by name: ``import_tools: ["mcp/<server>:<tool>"]``."""

    transport: Literal["stdio", "http", "sse"] = "stdio"
    """``stdio`` starts a program; ``http`` (streamable HTTP) and ``sse`` (older servers) connect to a running one."""
    command: str | None = Field(None, min_length=1)
    """The program of a ``stdio`` server; ``python`` is the service's own."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[VariableName, str] = Field(default_factory=dict, repr=False)
    """Variables of its environment, beside ``PATH``, ``HOME`` and the like. No keys: see ``pass_env``."""
    pass_env: tuple[VariableName, ...] = ()
    """Names of variables that it gets from the service's own environment, such as its keys."""
    directory: str | None = None
    """Where it is started, from the project's folder; that folder if not given."""
    url: str | None = Field(None, pattern=r"^https?://[^\s@]+$", max_length=2000)
    """Address of an ``http`` or ``sse`` server."""
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Headers of each request. No keys: see ``key_env``."""
    key_env: VariableName | None = None
    """Environment variable that holds the server's key."""
    key_header: str = Field("Authorization", pattern=r"^[A-Za-z0-9-]+$")
    """Header that carries the key."""
    key_scheme: str = Field("Bearer", pattern=r"^[A-Za-z0-9-]*$")
    """Word before the key; empty for none."""
    timeout_s: Seconds | None = Field(None, gt=0, le=600)
    """How long one call may take; ``tool_timeout`` of agent.yml if not given."""
    connect_timeout_s: Seconds = Field(15, gt=0, le=120)
    """How long connecting may take. Readiness waits for it once, and no longer."""
