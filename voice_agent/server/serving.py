"""Serve until told to stop, then drain: uvicorn, signals, and the service's own tasks under one owner."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI

from voice_agent.channels.carriers.carriers import carriers_of
from voice_agent.channels.websocket import MAX_MESSAGE_BYTES
from voice_agent.config import Channels, ServerOptions
from voice_agent.connections import BoundedWebSocket, PunctualHttp
from voice_agent.diagnostics import ProjectError, RemediableError
from voice_agent.security import Gate, api_key
from voice_agent.server import inspection
from voice_agent.server.application import Application, Service
from voice_agent.server.listening import listen
from voice_agent.server.pages import Pages
from voice_agent.server.ports import Port, open_ports
from voice_agent.telemetry.logging import bind, bound

log = logging.getLogger(__name__)

PING_S = 20.0
"""Keep-alive of a WebSocket: a ping this often, and this long to answer it."""
SHUTDOWN_S = 3
"""Limit on open HTTP requests after the calls have been drained."""


class _Server(uvicorn.Server):
    """uvicorn without its signal handling: it re-raises SIGTERM after a graceful shutdown, so status 0 is not had."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _configure(app: Application, options: ServerOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        lifespan="off",
        http=PunctualHttp,
        ws=BoundedWebSocket,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=2 * options.max_calls + 200,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


async def serve(
    service: Service,
    options: ServerOptions,
    *,
    channels: Channels | None = None,
    stop: asyncio.Event | None = None,
    listening: Callable[[int], None] | None = None,
    ready: Callable[[], None] | None = None,
    extend: Callable[[FastAPI], None] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or ``stop``; then drain and return. Probes answer while the service warms.

    Args:
        channels: Those that listen on ports of their own are opened too.
        listening: Called with the port of HTTP once connections are accepted.
        ready: Called once calls are admitted.
        extend: May add routes of its own.

    Raises:
        RemediableError: No key where one is needed, a port in use, or what `Service.start` raises.
        ProjectError: What `Service.start` raises.
    """
    front = _open(service, options, channels or Channels(), extend)
    server, stop = _Server(_configure(front.app, options)), stop or asyncio.Event()
    faults: list[RemediableError | ProjectError] = []

    async def warm_up() -> None:
        try:
            await service.start()
            if ready:
                ready()
        except (RemediableError, ProjectError) as fault:
            faults.append(fault)
            stop.set()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_unhandled)
    with _stopped_by_signals(loop, stop, server):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(server.serve(sockets=[front.sock]), name="server")
                carrying = group.create_task(front.app.run(), name="calls")
                running = group.create_task(service.run(), name="service")
                warming = group.create_task(warm_up(), name="warm-up")
                others = [group.create_task(port.run(), name=port.name) for port in front.ports]
                if listening:
                    listening(front.sock.getsockname()[1])
                await stop.wait()
                if not faults:
                    log.info("stopping: calls are told to end")
                warming.cancel()
                front.app.stop_connecting()
                await service.drain(options.drain_timeout_s)
                server.should_exit = True
                for task in (running, carrying, *others):
                    task.cancel()
        finally:
            # Also when a part of it failed: what was said is still to be kept.
            await service.aclose()
    if faults:
        raise faults[0]


@dataclass(frozen=True, slots=True)
class _Front:
    """What callers reach: the application with its pages, the socket of HTTP, and the ports of channels."""

    app: Application
    sock: socket.socket
    ports: Sequence[Port]


def _open(
    service: Service, options: ServerOptions, channels: Channels, extend: Callable[[FastAPI], None] | None
) -> _Front:
    """Open the sockets and put the application together.

    Raises:
        RemediableError: No key where one is needed, or a port in use.
    """
    key, inspector, pages = api_key(options), service.inspector, Pages()
    inspected = inspector is not None and inspection.is_on(inspector.options, options.host, key is not None)
    inspector_pages = inspection.pages() if inspected else None
    open_paths = pages.paths | (inspector_pages.paths if inspector_pages else frozenset())
    gate = Gate(key, options.allowed_origins, service.tokens, open_paths)
    carriers = carriers_of(service.channels, options.public_url, service.calls)
    sock = listen(options.host, options.port)
    ports = open_ports(channels, service.calls, service.tokens)
    dialers = {port.name.lower(): port.dialer for port in ports if port.dialer is not None}
    app = Application(service, gate, options.allowed_origins, carriers, dialers)
    app.http.include_router(pages.routes())
    if inspector is not None and inspector_pages is not None:
        app.http.include_router(inspection.router(inspector, has_key=key is not None))
        app.http.include_router(inspector_pages.routes())
        app.http.state.inspector = inspection.PAGES
    if extend:
        extend(app.http)
    return _Front(app, sock, ports)


@contextlib.contextmanager
def _stopped_by_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, server: uvicorn.Server) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks to stop; the second does not wait for open requests."""

    def asked() -> None:
        if stop.is_set():
            server.force_exit = True
        stop.set()

    signals = (signal.SIGTERM, signal.SIGINT) if sys.platform != "win32" else ()
    installed = []
    for number in signals:
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
            loop.add_signal_handler(number, asked)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)


def log_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Loop exception handler: one line that names the task and its call, and every other call goes on."""
    thing = context.get("task") or context.get("future") or context.get("handle")
    get_context = getattr(thing, "get_context", None)  # tasks have it from Python 3.12 on
    ids = get_context().run(bound) if get_context else {}
    name = thing.get_name() if isinstance(thing, asyncio.Task) else type(thing).__name__
    fault = context.get("exception")
    with bind(**ids):
        log.error("%s in %s: %r", context.get("message", "unhandled exception"), name, fault, exc_info=fault)
