"""One carrier's way in: its webhooks, and the socket of its media.

::

    webhook ─▶ signature ─▶ "stream it to us, with this token"
    upgrade ─▶ signature ─▶ accept ─▶ which call? ─▶ the token is that call's ─▶ desk ─▶ the leg is ended

Neither is opened by the API key: carriers cannot show it. Nothing is read, answered or begun before the carrier's own
signature has been found good.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from voice_agent.channels import identifiers
from voice_agent.channels.carriers.api import ApiFault
from voice_agent.channels.carriers.carrier import (
    Answer,
    Carrier,
    Event,
    Progress,
    Redirected,
    Ringing,
    StreamFailed,
    Unsigned,
)
from voice_agent.channels.carriers.dialer import CarrierDialer
from voice_agent.channels.carriers.pending import BadStream, Expected, PendingCalls, Replayed, TooManyPending
from voice_agent.channels.carriers.request import BadCarrierRequest, CarrierRequest, read_request, request_of
from voice_agent.channels.carriers.wire import CarrierWire, Leg
from voice_agent.channels.desk import CallDesk, CallRequest
from voice_agent.channels.doorkeeper import Denial
from voice_agent.channels.outbound import DialOutcome, DialResult
from voice_agent.channels.streaming.channel import MediaSocketChannel, Refused
from voice_agent.channels.streaming.connection import Receive, Scope, Send
from voice_agent.channels.streaming.facts import TOKEN_PARAMETER
from voice_agent.channels.streaming.serializer import Inbound, Serializer, Started
from voice_agent.channels.streaming.wire import StreamWire
from voice_agent.telemetry.metrics import CONNECTIONS_REFUSED

log = logging.getLogger(__name__)

_LEG, _EXPECTED = "voice_agent.carrier.leg", "voice_agent.carrier.expected"
NOT_SIGNED = Denial(403, "bad_signature", "The request is not signed as it must be.")


class CarrierChannel:
    """Takes one carrier's calls, and places calls through it.

    Args:
        public_url: Where the service is seen from outside.
        now: Seconds of a monotonic clock.
        wall: Seconds since 1970, for signatures that tell when they were made.
    """

    def __init__(
        self,
        carrier: Carrier,
        desk: CallDesk,
        public_url: str,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.carrier, self._public_url, self._wall = carrier, public_url, wall
        self.pending = PendingCalls(now)
        self.dialer = CarrierDialer(carrier, self.pending, lambda id, who: desk.note(id, "answered_by", who=who))
        self._media = _CarrierSocket(self, desk)

    async def media(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI application of the media socket."""
        try:
            await self._media(scope, receive, send)
        finally:
            if (expected := scope.get(_EXPECTED)) and expected.on_result:
                expected.on_result(DialResult(DialOutcome.NOT_READY, "the call was not taken"))
            if leg := scope.get(_LEG):
                await leg.end()

    async def webhook(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI application of the webhooks."""
        try:
            request = await read_request(scope, receive, self._public_url)
            _proved(self.carrier.check, request, self._wall())
            answer = await self._act(self.carrier.hooks[scope["path"]](request))
        except Unsigned as fault:
            log.warning("a webhook of %s was refused: %s", self.carrier.channel, fault)
            answer = self._refused("bad_signature", 403)
        except Replayed:
            answer = self._refused("replayed", 403)
        except TooManyPending:
            answer = self._refused("too_many_calls", 503)
        except ApiFault as fault:
            answer = self._refused("api_fault", 502)
            log.warning("%s did not take the call: %s", self.carrier.channel, fault)
        except BadCarrierRequest as fault:
            answer = self._refused(fault.code, fault.status)
        await _respond(send, answer)

    def judge(self, scope: Scope) -> Denial | None:
        """Judge an upgrade before it is accepted."""
        try:
            request = request_of(scope, self._public_url)
            _proved(self.carrier.check_upgrade, request, self._wall())
            if token := self.carrier.stream_token(request):
                self.pending.find(token)
        except (Unsigned, BadStream, BadCarrierRequest) as fault:
            log.warning("a stream of %s was refused: %s", self.carrier.channel, fault)
            CONNECTIONS_REFUSED.labels(channel=self.carrier.channel, code="bad_signature").inc()
            return NOT_SIGNED
        return None

    async def _act(self, event: Event) -> Answer:
        match event:
            case Ringing(call, caller, called):
                facts = {"caller_number": caller, "called_number": called}
                known = {name: value for name, value in facts.items() if value}
                expected = self.pending.expect(call, identifiers.new_conversation_id(), known)
                return await self.carrier.answer(event, expected.token)
            case Progress():
                self.dialer.progress(event)
            case Redirected(call):
                return self.carrier.redirect(call)
            case StreamFailed(call):
                log.warning("%s could not connect its stream: see server.public_url", self.carrier.channel)
                await self.carrier.hang_up(call)
        return Answer()

    def expected(self, scope: Scope, started: Started) -> Expected:
        """Return the call that a stream is of. Raises `BadStream`."""
        carried = self.carrier.stream_token(request_of(scope, self._public_url))
        expected = self.pending.redeem(carried or started.parameters.get(TOKEN_PARAMETER, ""), started.call)
        scope[_LEG], scope[_EXPECTED] = Leg(self.carrier, expected), expected
        return expected

    def _refused(self, code: str, status: int) -> Answer:
        CONNECTIONS_REFUSED.labels(channel=self.carrier.channel, code=code).inc()
        return Answer(f'{{"code":"{code}"}}'.encode(), "application/json", status)


class _CarrierSocket(MediaSocketChannel):
    """Binds each stream to the call that its token was made for."""

    def __init__(self, channel: CarrierChannel, desk: CallDesk) -> None:
        super().__init__(desk, channel.judge, lambda scope: channel.carrier.serializer())
        self._channel = channel

    def request(self, scope: Scope, serializer: Serializer, started: Started) -> CallRequest:
        try:
            expected = self._channel.expected(scope, started)
        except (BadStream, Replayed) as fault:
            raise Refused(getattr(fault, "code", "replayed")) from None

        async def connect(call_id: str) -> bool:
            if expected.on_result:
                expected.on_result(DialResult(DialOutcome.ANSWERED, call_id=call_id))
            return True

        channel, conversation_id = self._channel.carrier.channel, expected.conversation_id
        place, facts = expected.place, expected.facts
        return CallRequest(conversation_id, channel, grant=expected.grant, connect=connect, facts=facts, place=place)

    def wire(
        self, scope: Scope, receive: Receive, send: Send, serializer: Serializer, early: Sequence[Inbound]
    ) -> StreamWire:
        return CarrierWire(receive, send, serializer, early, scope[_LEG])


def _proved(check: Callable[[CarrierRequest, float], None], request: CarrierRequest, now_s: float) -> None:
    """Return if a request is the carrier's own. Raises `Unsigned`, `BadCarrierRequest`; no other, whatever was sent."""
    try:
        check(request, now_s)
    except (Unsigned, BadCarrierRequest):
        raise
    except Exception as fault:  # noqa: BLE001 - the carriers' packages raise many kinds for what no carrier sends
        raise Unsigned(f"cannot be read: {type(fault).__name__}") from None


async def _respond(send: Send, answer: Answer) -> None:
    headers = [(b"content-type", answer.content_type.encode()), (b"content-length", str(len(answer.body)).encode())]
    headers.append((b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
