"""A server as a program of ours: messages a line each over its input and output, its error output into our log.

closing   input closed ├ CLOSE_S ┤ SIGTERM to its group ├ CLOSE_S ┤ SIGKILL
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4_000_000
"""Longest message that is taken in; a server that sends a longer one is disconnected."""
MAX_GARBAGE = 100
"""Lines without a message, one after another, after which a server is disconnected."""
CLOSE_S = 1.0
LOGGED_LINES = 30
"""Lines of a server's error output that are logged; the rest is counted."""
LOGGED_CHARS = 300
INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""Variables that every server gets."""
_STARTER = str(Path(__file__).with_name("child.py"))


@dataclass(frozen=True, slots=True)
class Program:
    """What is started, and where.

    Attributes:
        name: The server's name in logs.
    """

    name: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    directory: Path


class ErrorOutput:
    """What a server writes to its standard error. Logged until the first call: what follows may repeat its words."""

    def __init__(self, name: str) -> None:
        self._name, self._lines, self.is_private = name, 0, False

    def line(self, text: str) -> None:
        """Log one line, or only count it."""
        self._lines += 1
        if not self.is_private and self._lines <= LOGGED_LINES:
            log.info(
                "[MCP server %s] %s", self._name, "".join(c if c.isprintable() else " " for c in text)[:LOGGED_CHARS]
            )

    def end(self) -> None:
        """Say how much was not logged."""
        log.debug("[MCP server %s] wrote %d lines to its error output", self._name, self._lines)


def find_command(command: str, env: Mapping[str, str], directory: Path) -> str | None:
    """Return the path of a program, or None if it is not on this machine. ``python`` is the service's own."""
    if command == "python":
        return sys.executable
    if os.sep in command:
        path = directory / command
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(command, path=env.get("PATH"))


@asynccontextmanager
async def running(program: Program, errors: ErrorOutput) -> AsyncIterator[TransportStreams]:
    """Start the server and yield its messages as streams of the SDK; ended when left, whatever it is doing.

    Raises:
        FileNotFoundError: There is no such program.
    """
    import anyio

    path = await asyncio.to_thread(find_command, program.command, program.env, program.directory)
    if path is None:
        raise FileNotFoundError(f"the program {program.command!r} is not on this machine")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", _STARTER, str(os.getpid()), path, *program.args),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(program.env),
        cwd=program.directory,
        limit=MAX_MESSAGE_BYTES,
        start_new_session=True,
    )
    incoming, read = anyio.create_memory_object_stream[Any](0)
    write, outgoing = anyio.create_memory_object_stream[Any](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process, incoming, program.name)
            group.start_soon(_write, process, outgoing, incoming)
            group.start_soon(_read_errors, process, errors)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process, program.name)
        for stream in (incoming, read, write, outgoing):
            stream.close()
        errors.end()


async def _read(process: asyncio.subprocess.Process, incoming: Any, name: str) -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    assert process.stdout is not None
    garbage = 0
    async with incoming:
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                log.warning("MCP server %s sent a message of more than %d bytes; disconnected", name, MAX_MESSAGE_BYTES)
                return
            if not line:
                return
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                # What it says stays out of the log: it may be part of a result.
                garbage += 1
                if garbage == 1:
                    log.warning("MCP server %s wrote a line of %d bytes that is no message", name, len(line))
                if garbage > MAX_GARBAGE:
                    log.warning("MCP server %s writes no messages; disconnected", name)
                    return
                continue
            garbage = 0
            await incoming.send(SessionMessage(message))


async def _write(process: asyncio.subprocess.Process, outgoing: Any, incoming: Any) -> None:
    assert process.stdin is not None
    try:
        async with outgoing:
            async for item in outgoing:
                process.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
    except OSError:
        # It may live on without listening: then nothing more comes of it.
        await incoming.aclose()


async def _read_errors(process: asyncio.subprocess.Process, errors: ErrorOutput) -> None:
    assert process.stderr is not None
    while True:
        try:
            line = await process.stderr.readline()
        except ValueError:
            continue  # without an end; what there was of it is dropped
        if not line:
            return
        errors.line(line.decode(errors="replace").rstrip())


async def _end(process: asyncio.subprocess.Process, name: str) -> None:
    if process.stdin is not None:
        process.stdin.close()
    for sign in (signal.SIGTERM, signal.SIGKILL, None):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await process.wait()
                break
        if sign is None:
            log.error("MCP server %s (process %d) cannot be ended", name, process.pid)
        else:
            _signal(process.pid, sign)
    # What it has started itself goes with it.
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)
