"""The way in of providers that stream a call over a WebSocket of their own making.

::

    upgrade ─▶ doorkeeper ─▶ accept ─▶ read until the provider says which call it is ─▶ desk
                 refuses                 at most HANDSHAKE_S and HANDSHAKE_MESSAGES

Of too many that have not said it, the oldest makes room for the newest (`Handshakes`).
What tells one provider from another is its `Serializer`, made anew for each connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from voice_agent.channels import identifiers
from voice_agent.channels.desk import CallDesk, CallRefused, CallRequest
from voice_agent.channels.doorkeeper import Doorkeeper, deny
from voice_agent.channels.handshakes import Handshakes, MadeRoom
from voice_agent.channels.messages import BadMessage, CallerHangUp
from voice_agent.channels.streaming.connection import (
    NORMAL_CLOSURE,
    POLICY_VIOLATION,
    TRY_AGAIN_LATER,
    Receive,
    Scope,
    Send,
)
from voice_agent.channels.streaming.facts import TOKEN_PARAMETER, facts_of
from voice_agent.channels.streaming.serializer import (
    Answer,
    Farewell,
    Inbound,
    Media,
    Message,
    Serializer,
    Stamps,
    Started,
)
from voice_agent.channels.streaming.wire import CLOSE_S, StreamWire
from voice_agent.channels.tokens import PREFIX, CallTokens, Grant, TokenRefused, granted
from voice_agent.telemetry.metrics import CONNECTIONS_REFUSED

log = logging.getLogger(__name__)

HANDSHAKE_S = 5.0
"""Limit on the provider's word which call it is."""
HANDSHAKE_MESSAGES = 200
"""Messages read before that; more are no handshake."""

MakeSerializer = Callable[[Scope], Serializer]
"""Makes the serializer of one connection, from the ASGI scope of its upgrade. Raises `BadMessage` for a bad query."""


class Refused(Exception):
    """The connection does not become a call. ``quiet``: the log has been told already."""

    def __init__(self, code: str, close_code: int = POLICY_VIOLATION, *, quiet: bool = False) -> None:
        super().__init__(code)
        self.code, self.close_code, self.quiet = code, close_code, quiet


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What the handshake told, and what was read behind it."""

    started: Started
    early: Sequence[Inbound]


class MediaSocketChannel:
    """ASGI application for the path that a provider connects to.

    Args:
        doorkeeper: Judges each upgrade before it is accepted.
        subprotocols: Of those that the provider offers, the first of these is agreed to.
        tokens: Where given, a stream's own parameter may carry a call token (`TOKEN_PARAMETER`).
    """

    def __init__(
        self,
        desk: CallDesk,
        doorkeeper: Doorkeeper,
        make_serializer: MakeSerializer,
        *,
        subprotocols: Sequence[str] = (),
        tokens: CallTokens | None = None,
    ) -> None:
        self._desk, self._doorkeeper, self._make_serializer = desk, doorkeeper, make_serializer
        self._subprotocols, self._tokens = tuple(subprotocols), tokens
        self._handshakes = Handshakes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if denial := self._doorkeeper(scope):
            log.warning("connection refused: %s", denial.code)
            await deny(send, denial)
            return
        await receive()  # websocket.connect
        try:
            await self._answer(scope, receive, send)
        except OSError:
            log.debug("the far end left during the handshake")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        offered = scope.get("subprotocols") or ()
        agreed = next((name for name in self._subprotocols if name in offered), None)
        await send({"type": "websocket.accept", "subprotocol": agreed})
        serializer: Serializer | None = None
        try:
            serializer = self._make_serializer(scope)
            if (beginning := await self._begin(serializer, receive, send)) is None:
                return
            request = self.request(scope, serializer, beginning.started)
            wire = self.wire(scope, receive, send, serializer, beginning.early)
            await self._desk.take(request, wire)
            await wire.close()
        except BadMessage as fault:
            await _turn_away(serializer, send, fault.code, POLICY_VIOLATION)
        except TokenRefused as refusal:
            await _turn_away(serializer, send, refusal.code, POLICY_VIOLATION)
        except CallRefused as refusal:
            await _turn_away(serializer, send, refusal.code, TRY_AGAIN_LATER if refusal.retry else POLICY_VIOLATION)
        except Refused as refusal:
            await _turn_away(serializer, send, refusal.code, refusal.close_code, quiet=refusal.quiet)

    async def _begin(self, serializer: Serializer, receive: Receive, send: Send) -> _Beginning | None:
        """Read until it is known which call this is; None where the far end went before that."""
        try:
            async with self._handshakes.place(serializer.traits.channel, HANDSHAKE_S):
                return await _handshake(serializer, receive, send)
        except TimeoutError:
            raise Refused("no_handshake") from None
        except MadeRoom:
            raise Refused("too_many_connections", TRY_AGAIN_LATER, quiet=True) from None

    def request(self, scope: Scope, serializer: Serializer, started: Started) -> CallRequest:
        """Return who is to be connected. Raises `Refused` or `TokenRefused`."""
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        opened_by = granted(scope)
        grant = opened_by or self._grant_of(started)
        asked = query.get("conversation")
        conversation_id = identifiers.chosen(asked, grant)
        if conversation_id is None:
            raise Refused("bad_conversation")
        if grant is None and not asked and identifiers.is_conversation_id(started.call):
            conversation_id = started.call
        # Whoever came with no more than a token may say nothing beyond what the application has said with it.
        facts = facts_of(started, query) if opened_by is None else {}
        return CallRequest(conversation_id, serializer.traits.channel, grant=grant, facts=facts)

    def wire(
        self, scope: Scope, receive: Receive, send: Send, serializer: Serializer, early: Sequence[Inbound]
    ) -> StreamWire:
        """Return the wire of a call that may begin."""
        return StreamWire(receive, send, serializer, early)

    def _grant_of(self, started: Started) -> Grant | None:
        token = started.parameters.get(TOKEN_PARAMETER, "")
        return self._tokens.find(token) if self._tokens is not None and token.startswith(PREFIX) else None


async def _handshake(serializer: Serializer, receive: Receive, send: Send) -> _Beginning | None:
    for _ in range(HANDSHAKE_MESSAGES):
        message = await receive()
        if message["type"] != "websocket.receive":
            return None
        data = message.get("bytes")
        items = serializer.read(message.get("text") or "" if data is None else data)
        for at, item in enumerate(items):
            match item:
                case Started():
                    return _Beginning(item, items[at + 1 :])
                case Answer(answer):
                    await send(_sent(serializer, answer))
                case Farewell(answer, _):
                    await send(_sent(serializer, answer))
                    await send({"type": "websocket.close", "code": NORMAL_CLOSURE})
                    return None
                case CallerHangUp():
                    await send({"type": "websocket.close", "code": NORMAL_CLOSURE})
                    return None
                case Media():
                    pass  # of no call yet
    raise Refused("no_handshake")


async def _turn_away(
    serializer: Serializer | None, send: Send, code: str, close_code: int, *, quiet: bool = False
) -> None:
    """Say that the call cannot be, in the provider's own words, and close."""
    channel = serializer.traits.channel if serializer is not None else "websocket"
    CONNECTIONS_REFUSED.labels(channel=channel, code=code).inc()
    log.log(logging.DEBUG if quiet else logging.WARNING, "connection refused: %s", code)
    try:
        async with asyncio.timeout(CLOSE_S):
            if serializer is not None:
                for message in serializer.hang_up(code):
                    await send(_sent(serializer, message))
            await send({"type": "websocket.close", "code": close_code, "reason": code})
    except TimeoutError:
        log.debug("the far end took no goodbye")


def _sent(serializer: Serializer, message: Message) -> dict[str, str | bytes]:
    if isinstance(message, bytes):
        return {"type": "websocket.send", "bytes": message}
    return {"type": "websocket.send", "text": serializer.stamp(message) if isinstance(serializer, Stamps) else message}
