"""A TCP connection of framed messages, in the terms of the wire that all streaming channels share."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, MutableMapping
from typing import Any

SEND_BUFFER_BYTES = 4 * 1024
"""Audio that the kernel and the transport may hold for a far end that does not read."""
CLOSE_S = 2.0
"""Limit on sending what waits at the end."""

_GONE: dict[str, Any] = {"type": "websocket.disconnect"}


class FramedConnection:
    """Gives `StreamWire` its two callables on a TCP stream.

    A read that is given up loses nothing: the next one goes on where it stood.

    Args:
        header_bytes: Length of what each frame begins with.
        payload_bytes: Length of what follows a header. Raises `ValueError` for what no header says: what comes after
            it means nothing, so the connection counts as gone.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        header_bytes: int,
        payload_bytes: Callable[[bytes], int],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._header_bytes, self._payload_bytes = header_bytes, payload_bytes
        self._header = b""
        self._held: bytes | None = None
        writer.transport.set_write_buffer_limits(SEND_BUFFER_BYTES)
        # What the kernel has taken cannot be taken back either: the server's own limit would be seconds of audio.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * SEND_BUFFER_BYTES)

    async def frame(self) -> bytes:
        """Return the next whole frame, header included.

        Raises:
            EOFError, OSError: The connection ended.
            ValueError: An impossible header.
        """
        if (held := self._held) is not None:
            self._held = None
            return held
        if not self._header:
            self._header = await self._reader.readexactly(self._header_bytes)
        length = self._payload_bytes(self._header)
        payload = await self._reader.readexactly(length) if length else b""
        whole, self._header = self._header + payload, b""
        return whole

    async def peek(self) -> bytes:
        """Return the next whole frame, and keep it for the next read. Raises as `frame` does."""
        self._held = await self.frame()
        return self._held

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next frame as a message, or that the far end is gone."""
        try:
            return {"type": "websocket.receive", "bytes": await self.frame()}
        except (OSError, EOFError, ValueError):
            return _GONE

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send one message; ``websocket.close`` closes the connection.

        Raises:
            OSError: The far end is gone.
        """
        if message["type"] == "websocket.close":
            self._writer.close()
            return
        self._writer.write(message["bytes"])
        await self._writer.drain()

    async def aclose(self) -> None:
        """Send what waits and close; let go of the connection when that takes too long. Never raises for one gone."""
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
