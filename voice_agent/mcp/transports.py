"""How a server is reached, as its options say."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voice_agent.config import McpServerOptions
from voice_agent.mcp.process import INHERITED, ErrorOutput, Program, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.client._transport import TransportStreams


def environment(options: McpServerOptions, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a server's program gets."""
    given = {name: environ[name] for name in (*INHERITED, *options.pass_env) if name in environ}
    return {**given, **options.env}


def headers(options: McpServerOptions, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the headers of a server's requests, its key among them."""
    found = dict(options.headers)
    if options.key_env and (key := environ.get(options.key_env)):
        found[options.key_header] = f"{options.key_scheme} {key}".strip()
    return found


def transport(
    name: str, options: McpServerOptions, root: Path, errors: ErrorOutput
) -> AbstractAsyncContextManager[TransportStreams]:
    """Return the way to the server ``name`` of the project in ``root``; nothing is started or connected yet."""
    if options.transport == "stdio":
        folder = root / (options.directory or ".")
        assert options.command is not None
        return running(Program(name, options.command, options.args, environment(options), folder.resolve()), errors)
    return _over_http(options)


@asynccontextmanager
async def _over_http(options: McpServerOptions) -> AsyncIterator[TransportStreams]:
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    from voice_agent.mcp.http import MAX_RESPONSE_BYTES, READ_S, http_client

    assert options.url is not None
    own = headers(options)
    if options.transport == "sse":
        factory: Any = lambda headers=None, timeout=None, auth=None: http_client(own, options.connect_timeout_s)  # noqa: E731
        async with sse_client(options.url, httpx_client_factory=factory, sse_read_timeout=READ_S) as streams:
            yield streams
        return
    async with (
        http_client(own, options.connect_timeout_s) as client,
        streamable_http_client(options.url, http_client=client, max_sse_event_size=MAX_RESPONSE_BYTES) as streams,
    ):
        yield streams


@asynccontextmanager
async def watched(
    way: AbstractAsyncContextManager[TransportStreams], lost: Callable[[], None]
) -> AsyncIterator[TransportStreams]:
    """Pass the streams of ``way`` on, and call ``lost`` when nothing more can come from the server."""
    import anyio

    async with way as (read, write):
        passed, received = anyio.create_memory_object_stream[Any](0)

        async def pump() -> None:
            try:
                async with passed:
                    async for message in read:
                        await passed.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # the session is gone
            finally:
                lost()

        async with anyio.create_task_group() as group:
            group.start_soon(pump)
            try:
                yield received, write
            finally:
                group.cancel_scope.cancel()
                received.close()


def quieten() -> None:
    """Keep the SDK from logging what servers and calls say; what has become of a connection is logged by us."""
    for name, level in (("mcp", logging.CRITICAL), ("client", logging.CRITICAL), ("httpx2", logging.WARNING)):
        logging.getLogger(name).setLevel(level)
