"""uvicorn's connections, with bounds on what a client may make the others wait for.

A client that sends half a request and no more would hold its place for ever, until there is none left and even
the probes are turned away. And a flood of tiny control frames is parsed by the server before anything of ours
is asked; what is ours pushes back only on messages.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from voice_agent.channels.limits import TokenBucket

log = logging.getLogger(__name__)

REQUEST_S = 10.0
"""How long the head of a request, or the upgrade to a WebSocket, may take to arrive."""
CONTROL_FRAMES = (200.0, 50.0)
"""Pings, pongs and pieces of messages at once, and per second after that. Ordinary clients send one in 20 s."""


class PunctualHttp(H11Protocol):
    """Closes a connection whose request does not come."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        upgraded = self not in self.connections
        if upgraded or not (self.cycle is None or self.cycle.response_complete):
            self._forget_deadline()
        elif self._deadline is None:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_S, self._too_late)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        log.debug("a request did not arrive within %.0f s", REQUEST_S)
        self._deadline = None
        self.transport.close()


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """Ends a connection that floods with frames which are no messages."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._control_frames = TokenBucket(*CONTROL_FRAMES, self.loop.time())

    def handle_ping(self) -> None:
        if self._allowed():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        if self._allowed():
            super().handle_pong(event)

    def handle_cont(self, event: Frame) -> None:
        if self._allowed():
            super().handle_cont(event)

    def _allowed(self) -> bool:
        transport = self.transport
        if transport.is_closing():
            return False
        if self._control_frames.take(1, self.loop.time()):
            return True
        log.warning("a client flooded with control frames and was let go")
        self.stop_keepalive()
        self.conn.fail(CloseCode.POLICY_VIOLATION, "too many frames")
        transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        transport.close()
        return False
