"""The AudioSocket channel: a TCP port to which Asterisk brings its calls.

AudioSocket has no authentication but the identity that a call begins with. So the port is bound to loopback, and
beyond it only identities count that ``POST /v1/calls`` has given out (`CallTokens.find_identity`).
"""

from __future__ import annotations

import asyncio
import logging
import socket

from voice_agent.channels import audiosocket_messages as messages
from voice_agent.channels.audiosocket_messages import CHANNEL, AudioSocketSerializer
from voice_agent.channels.desk import CallDesk, CallRefused, CallRequest
from voice_agent.channels.handshakes import Handshakes, MadeRoom
from voice_agent.channels.messages import BadMessage
from voice_agent.channels.streaming.tcp import FramedConnection
from voice_agent.channels.streaming.wire import StreamWire
from voice_agent.channels.tokens import CallTokens, Grant, TokenRefused
from voice_agent.telemetry.metrics import CONNECTIONS_REFUSED

log = logging.getLogger(__name__)

HANDSHAKE_S = 5.0
"""Limit on the identity of a new connection."""
FIRST_AUDIO_S = 1.0
"""How long the first audio is awaited, which tells the rate; 8 kHz is assumed after that."""
MAX_AUDIO_S = 0.6
"""Agent audio kept while the connection stalls: once sent it cannot be taken back, so little is to be late."""


class AudioSocketChannel:
    """Takes calls on a listening socket.

    Args:
        registered_only: Refuse calls whose identity was not given out beforehand.
    """

    def __init__(self, desk: CallDesk, tokens: CallTokens, *, registered_only: bool) -> None:
        self._desk, self._tokens, self._registered_only = desk, tokens, registered_only
        self._handshakes = Handshakes()

    async def run(self, sock: socket.socket) -> None:
        """Serve until cancelled; then every connection is closed."""
        async with asyncio.TaskGroup() as group:

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                group.create_task(self._connected(reader, writer), name=f"{CHANNEL}.connection")

            server = await asyncio.start_server(connected, sock=sock, limit=messages.MAX_PAYLOAD_BYTES * 2)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                # Not waited for: from Python 3.12 on that lasts as long as its connections, which the group ends after.
                server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = FramedConnection(reader, writer, messages.HEADER_BYTES, messages.payload_bytes)
        try:
            async with self._handshakes.place(CHANNEL, HANDSHAKE_S):
                first = await connection.frame()
            grant, identity = self._identify(first)
            rate = await self._rate(connection)
            serializer = AudioSocketSerializer(rate)
            wire = StreamWire(connection.receive, connection.send, serializer, max_audio_s=MAX_AUDIO_S)
            await self._desk.take(CallRequest(identity, CHANNEL, grant=grant), wire)
            await wire.close()
        except TokenRefused as refusal:
            self._refuse(writer, refusal.code)
        except CallRefused as refusal:
            self._refuse(writer, refusal.code)
        except BadMessage as fault:
            self._refuse(writer, fault.code)
        except MadeRoom:
            self._hang_up(writer, "too_many_connections")
        except (OSError, EOFError, ValueError, TimeoutError):
            self._refuse(writer, "no_handshake")
        except Exception:
            # This caller's alone: the port, and every other call on it, goes on.
            log.exception("a call by AudioSocket failed")
            self._refuse(writer, "internal")
        finally:
            await connection.aclose()

    def _identify(self, first: bytes) -> tuple[Grant | None, str]:
        """Return what the call's identity, its first frame, stands for, and the conversation."""
        if first[0] != messages.IDENTITY:
            raise BadMessage("no_identity", "A call begins with its identity.")
        identity = messages.read_identity(first[messages.HEADER_BYTES :])
        try:
            grant = self._tokens.find_identity(identity)
        except TokenRefused:
            if self._registered_only:
                raise
            return None, identity.hex
        return grant, grant.conversation_id

    @staticmethod
    async def _rate(connection: FramedConnection) -> int:
        try:
            async with asyncio.timeout(FIRST_AUDIO_S):
                return messages.rate_of(await connection.peek()) or 8000
        except TimeoutError:
            return 8000

    def _refuse(self, writer: asyncio.StreamWriter, code: str) -> None:
        log.warning("connection refused: %s", code)
        self._hang_up(writer, code)

    @staticmethod
    def _hang_up(writer: asyncio.StreamWriter, code: str) -> None:
        """Say that the call cannot be, in the one way there is."""
        CONNECTIONS_REFUSED.labels(channel=CHANNEL, code=code).inc()
        writer.write(messages.frame(messages.HANG_UP))
        writer.close()
