"""The HTTP face of the service: probes, metrics, the WebSocket wire, text by REST.

Audio frames do not pass through the web framework: the WebSocket channel is called by the server
directly, everything else goes to FastAPI. The gate stands before both.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, MutableMapping
from http import HTTPStatus
from typing import Any, Protocol

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from voice_agent.channels import rest
from voice_agent.channels.desk import CallDesk, TextDesk
from voice_agent.channels.websocket import MAX_MESSAGE_BYTES, Denial, WebSocketChannel, deny
from voice_agent.channels.websocket_wire import Receive, Send
from voice_agent.config import ServerOptions
from voice_agent.connections import BoundedWebSocket, PunctualHttp
from voice_agent.diagnostics import ProjectError, RemediableError
from voice_agent.security import Gate, api_key
from voice_agent.telemetry.logging import bind, bound

log = logging.getLogger(__name__)

PING_S = 20.0
"""Keep-alive of a WebSocket: a ping this often, and this long to answer it."""
SHUTDOWN_S = 3
"""Limit on open HTTP requests after the calls have been drained."""
SEND_BUFFER_BYTES = 64 * 1024
"""Kernel buffer of a connection. Left to itself it grows to minutes of audio for a client that does not read."""
RECEIVE_BUFFER_BYTES = 24 * 1024
"""What a flood can make the server parse in one go. Enough for 48 kHz audio from the other side of the world."""
UNSENT_MS = 30_000
"""The kernel drops a connection whose data could not be sent for this long."""
NOTHING_HERE = (
    "There is nothing here. Calls come by WebSocket to /ws, text by POST to /v1/conversations/ID/messages; "
    "/healthz, /readyz and /metrics tell how the service is."
)


class Service(Protocol):
    """What the server serves (`voice_agent.service.Service`)."""

    @property
    def calls(self) -> CallDesk: ...

    @property
    def texts(self) -> TextDesk: ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What keeps the service from taking calls; empty when ready."""
        ...

    async def start(self) -> None:
        """Load and warm everything. Raises `RemediableError` or `ProjectError` when that cannot be."""
        ...

    async def run(self) -> None:
        """Keep the service going until cancelled."""
        ...

    async def drain(self, timeout_s: float) -> None:
        """Refuse new calls; let the others finish, at most this long."""
        ...

    async def aclose(self) -> None: ...


class Application:
    """The ASGI application of a service. ``http`` is the FastAPI part, open for more routes."""

    def __init__(self, service: Service, gate: Gate, allowed_origins: tuple[str, ...] = ()) -> None:
        self._gate = gate
        self._websocket = WebSocketChannel(service.calls, gate)
        self.http = _http(service)
        if allowed_origins:
            headers = ["authorization", "content-type"]
            self.http.add_middleware(
                CORSMiddleware, allow_origins=allowed_origins, allow_methods=["GET", "POST"], allow_headers=headers
            )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if scope["path"] == "/ws":
                await self._websocket(scope, receive, send)
            else:
                await deny(send, self._gate(scope) or Denial(404, "not_found", "The WebSocket is at /ws."))
        elif denial := self._gate(scope):
            await rest.error(denial.status, denial.code, denial.message)(scope, receive, send)
        else:
            await self.http(scope, receive, send)


def _http(service: Service) -> FastAPI:
    app = FastAPI(title="Voice agent", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(rest.router(service.texts))

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", response_model=None)
    async def readyz() -> Response:
        missing = service.missing
        if not missing:
            return JSONResponse({"status": "ready"})
        text = f"Not ready: {', '.join(missing)}."
        return JSONResponse({"code": "not_ready", "message": text, "missing": missing}, 503)

    @app.get("/metrics", response_model=None)
    def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, fault: HTTPException) -> Response:
        message = NOTHING_HERE if fault.status_code == HTTPStatus.NOT_FOUND else f"{fault.detail}."
        return rest.error(fault.status_code, "http_error", message)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, fault: RequestValidationError) -> Response:
        return rest.error(422, "bad_request", "The request does not have the expected form.")

    @app.exception_handler(Exception)
    async def failed(request: Request, fault: Exception) -> Response:
        return rest.error(500, "internal", "Something went wrong on our side.")

    return app


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket.

    Raises:
        RemediableError: The port is taken, or the address is not this machine's.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, proto)
    except OSError as fault:
        raise RemediableError(f"Cannot resolve {host!r}: {fault}.", "Check --host or server.host.") from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit these.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNSENT_MS)
        sock.bind(address)
        sock.listen(1024)
    except OSError as fault:
        sock.close()
        if fault.errno == errno.EADDRINUSE:
            remedy = "Stop the program that holds it, or choose another port with --port."
            raise RemediableError(f"Port {port} on {host} is in use.", remedy) from None
        raise RemediableError(
            f"Cannot listen on {host}:{port}: {fault.strerror}.", "Check --host and --port."
        ) from None
    return sock


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
    stop: asyncio.Event | None = None,
    listening: Callable[[int], None] | None = None,
    ready: Callable[[], None] | None = None,
    extend: Callable[[FastAPI], None] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or ``stop``; then drain and return. Probes answer while the service warms.

    Args:
        listening: Called with the port once connections are accepted.
        ready: Called once calls are admitted.
        extend: May add routes of its own.

    Raises:
        RemediableError: No key where one is needed, a port in use, or what `Service.start` raises.
        ProjectError: What `Service.start` raises.
    """
    gate = Gate(api_key(options), options.allowed_origins)
    sock = listen(options.host, options.port)
    app = Application(service, gate, options.allowed_origins)
    if extend:
        extend(app.http)
    server, stop = _Server(_configure(app, options)), stop or asyncio.Event()
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
                group.create_task(server.serve(sockets=[sock]), name="server")
                running = group.create_task(service.run(), name="service")
                warming = group.create_task(warm_up(), name="warm-up")
                if listening:
                    listening(sock.getsockname()[1])
                await stop.wait()
                if not faults:
                    log.info("stopping: calls are told to end")
                warming.cancel()
                await service.drain(options.drain_timeout_s)
                server.should_exit = True
                running.cancel()
        finally:
            # Also when a part of it failed: what was said is still to be kept.
            await service.aclose()
    if faults:
        raise faults[0]


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
