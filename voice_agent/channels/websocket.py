"""The plain WebSocket channel: ``/ws?rate=&conversation=&token=&events=1&metrics=1&states=1``.

An ASGI application. Who may come in is decided by the `Doorkeeper` before the upgrade; what is
wrong with a request after that is said once in JSON, and the socket closed with a policy code.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from urllib.parse import parse_qsl

from voice_agent.call.wire import ErrorMessage
from voice_agent.channels import identifiers, messages
from voice_agent.channels.desk import CallDesk, CallRefused, CallRequest
from voice_agent.channels.doorkeeper import Doorkeeper, deny
from voice_agent.channels.plain import CHANNEL, PlainSerializer
from voice_agent.channels.streaming.connection import POLICY_VIOLATION, TRY_AGAIN_LATER, Receive, Scope, Send
from voice_agent.channels.streaming.wire import StreamWire
from voice_agent.channels.tokens import Grant, granted

log = logging.getLogger(__name__)

RATES = (8000, 16000, 24000, 48000)
DEFAULT_RATE = 16000
MAX_MESSAGE_BYTES = 64 * 1024
"""For the server's protocol layer, which closes the socket with 1009 on anything bigger."""


@dataclass(frozen=True, slots=True)
class CallParameters:
    """What a caller may choose in the query."""

    rate: int
    conversation_id: str
    events: bool
    metrics: bool
    states: bool


class BadParameter(Exception):
    """A query parameter cannot be used."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def read_parameters(query: bytes, grant: Grant | None = None) -> CallParameters:
    """Read the query string of an upgrade request.

    Args:
        grant: What the caller's token stands for; it says which conversation.

    Raises:
        BadParameter: The rate is none of `RATES`, or the conversation id breaks its rule or is not the token's.
    """
    given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    rate = given.get("rate", str(DEFAULT_RATE))
    if rate not in map(str, RATES):
        raise BadParameter("bad_rate", f'"rate" must be one of {", ".join(map(str, RATES))}.')
    conversation = identifiers.chosen(given.get("conversation"), grant)
    if conversation is None:
        rule = identifiers.RULE if grant is None else "left out, or the one that the token is for"
        raise BadParameter("bad_conversation", f'"conversation" must be {rule}.')
    wanted = (given.get(name) == "1" for name in ("events", "metrics", "states"))
    return CallParameters(int(rate), conversation, *wanted)


class WebSocketChannel:
    """ASGI application for the path ``/ws``."""

    def __init__(self, desk: CallDesk, doorkeeper: Doorkeeper) -> None:
        self._desk, self._doorkeeper = desk, doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if denial := self._doorkeeper(scope):
            log.warning("connection refused: %s", denial.code)
            await deny(send, denial)
            return
        await receive()  # websocket.connect
        try:
            await self._answer(scope, receive, send)
        except OSError:
            log.debug("the caller left during the handshake")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        try:
            chosen = read_parameters(scope["query_string"], grant := granted(scope))
        except BadParameter as error:
            await _turn_away(send, error.code, error.message, POLICY_VIOLATION)
            return
        serializer = PlainSerializer(
            chosen.conversation_id, chosen.rate, events=chosen.events, metrics=chosen.metrics, states=chosen.states
        )
        wire = StreamWire(receive, send, serializer)
        try:
            await self._desk.take(CallRequest(chosen.conversation_id, CHANNEL, chosen.events, grant), wire)
        except CallRefused as refusal:
            code = TRY_AGAIN_LATER if refusal.retry else POLICY_VIOLATION
            await _turn_away(send, refusal.code, refusal.message, code)
        else:
            await wire.close()


async def _turn_away(send: Send, code: str, message: str, close_code: int) -> None:
    await send({"type": "websocket.send", "text": messages.encode(ErrorMessage(code, message))})
    await send({"type": "websocket.close", "code": close_code, "reason": code})
