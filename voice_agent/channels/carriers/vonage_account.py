"""A Vonage application: its signature, its webhooks and what is asked of its REST API.

Webhooks carry a JWT that is signed with the account's signature secret and holds the hash of the body; the upgrade to a
stream carries one as well, since our NCCO asks for it. Requests of ours carry a JWT made with the application's key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from voice_agent.channels.carriers.api import ApiFault, RestApi
from voice_agent.channels.carriers.carrier import (
    Answer,
    Event,
    Placement,
    Progress,
    Ringing,
    Unsigned,
    as_json,
    international,
)
from voice_agent.channels.carriers.replays import Once
from voice_agent.channels.carriers.request import CarrierRequest
from voice_agent.channels.carriers.vonage import CALL_PARAMETER, CHANNEL, CONTENT_TYPE, VonageSerializer
from voice_agent.channels.outbound import DialOutcome
from voice_agent.channels.streaming.facts import TOKEN_PARAMETER
from voice_agent.channels.streaming.fields import text_at
from voice_agent.config import VonageOptions
from voice_agent.transfers import NOT_SUPPORTED, TransferReason, TransferResult, TransferTarget

ANSWER, EVENT, STREAM = "/vonage/answer", "/vonage/event", "/vonage/stream"
TOLERANCE_S = 300.0
"""How old a token may be, and how far clocks may be apart."""
_OUTCOMES = {
    "busy": DialOutcome.BUSY,
    "timeout": DialOutcome.NO_ANSWER,
    "unanswered": DialOutcome.NO_ANSWER,
    "cancelled": DialOutcome.NO_ANSWER,
    "rejected": DialOutcome.DECLINED,
    "failed": DialOutcome.TRUNK_ERROR,
}


class VonageCarrier:
    """Implements `voice_agent.channels.carriers.carrier.Carrier`.

    Args:
        private_key: PEM; "" where no call is placed or transferred.
    """

    channel = CHANNEL
    stream_path = STREAM
    leg_ends_with_stream = True

    def __init__(
        self, options: VonageOptions, public_url: str, secret: str, application_id: str, private_key: str = ""
    ) -> None:
        self._options, self._public_url = options, public_url.rstrip("/")
        self._secret, self._application_id, self._private_key = secret, application_id, private_key
        self._once = Once(2 * TOLERANCE_S)
        self.api = RestApi(options.api_url)
        self.hooks: Mapping[str, Callable[[CarrierRequest], Event]] = {ANSWER: self._answered, EVENT: self._event}

    @property
    def can_dial(self) -> bool:
        return bool(self._options.from_number and self._private_key)

    def serializer(self) -> VonageSerializer:
        return VonageSerializer()

    # What Vonage sends

    def check(self, request: CarrierRequest, now_s: float) -> None:
        claims = self._claims(request, now_s)
        if request.body:
            right = hashlib.sha256(request.body).hexdigest()
            if not hmac.compare_digest(str(claims.get("payload_hash", "")).lower().encode(), right.encode()):
                raise Unsigned("made for another body")
        self._use(claims, now_s)

    def check_upgrade(self, request: CarrierRequest, now_s: float) -> None:
        self._use(self._claims(request, now_s), now_s)

    def stream_token(self, request: CarrierRequest) -> str:
        return ""

    def _claims(self, request: CarrierRequest, now_s: float) -> Mapping[str, Any]:
        import jwt
        from vonage_jwt.errors import VonageVerifyJwtError
        from vonage_jwt.verify_jwt import verify_signature

        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unsigned("no signature")
        try:
            if not verify_signature(token.strip(), self._secret):
                raise Unsigned("made with another secret")
            claims = jwt.decode(token.strip(), options={"verify_signature": False})
        except (VonageVerifyJwtError, jwt.PyJWTError):
            raise Unsigned("no token, or one that has expired") from None
        made = claims.get("iat")
        if isinstance(made, bool) or not isinstance(made, int | float) or not abs(now_s - made) <= TOLERANCE_S:
            raise Unsigned("not made just now")
        if claims.get("application_id") != self._application_id:
            raise Unsigned("made for another application")
        return dict(claims)

    def _use(self, claims: Mapping[str, Any], now_s: float) -> None:
        name = claims.get("jti")
        if not isinstance(name, str) or not name or not self._once.first(name[:200], now_s):
            raise Unsigned("shown before")

    @staticmethod
    def _answered(request: CarrierRequest) -> Event:
        told: Mapping[str, Any] = request.object() if request.body else request.query
        call = text_at(told, "uuid")
        caller, called = international(text_at(told, "from")), international(text_at(told, "to"))
        return Ringing(call, caller, called) if call else None

    @staticmethod
    def _event(request: CarrierRequest) -> Event:
        told: Mapping[str, Any] = request.object() if request.body else request.query
        call, status = text_at(told, "uuid"), text_at(told, "status")
        if not call:
            return None
        if status in ("machine", "human"):
            return Progress(call, answered_by=status)
        return Progress(call, _OUTCOMES.get(status), over=status == "completed" or status in _OUTCOMES)

    # What Vonage is told

    def _streamed(self, token: str, call: str) -> Sequence[Mapping[str, Any]]:
        headers = {TOKEN_PARAMETER: token} | ({CALL_PARAMETER: call} if call else {})
        endpoint = {
            "type": "websocket",
            "uri": "ws" + self._public_url.removeprefix("http") + STREAM,
            "content-type": CONTENT_TYPE,
            "headers": headers,
            "authorization": {"type": "vonage"},
        }
        return [{"action": "connect", "endpoint": [endpoint]}]

    async def answer(self, ringing: Ringing, token: str) -> Answer:
        return as_json(self._streamed(token, ringing.call))

    def redirect(self, call: str) -> Answer:
        return Answer(status=404)

    async def place(self, placement: Placement) -> str:
        body: dict[str, Any] = {
            "to": [{"type": "phone", "number": placement.to.lstrip("+")}],
            "from": {"type": "phone", "number": self._options.from_number.lstrip("+")},
            "ncco": self._streamed(placement.token, ""),
            "event_url": [self._public_url + EVENT],
            "event_method": "POST",
            "ringing_timer": round(placement.ring_timeout_s),
        }
        if self._options.detect_machines:
            body["machine_detection"] = "continue"
        return text_at(await self._send("POST", "/v1/calls", body), "uuid")

    async def hang_up(self, call: str) -> None:
        await self._send("PUT", f"/v1/calls/{quote(call, safe='')}", {"action": "hangup"})

    @property
    def can_press(self) -> bool:
        return bool(self._private_key)

    async def press(self, call: str, keys: str) -> None:
        await self._send("PUT", f"/v1/calls/{quote(call, safe='')}/dtmf", {"digits": keys})

    async def transfer(self, call: str, target: TransferTarget) -> TransferResult:
        if target.warm or not self._private_key:
            return NOT_SUPPORTED
        phone = {"type": "phone", "number": target.to.lstrip("+")}
        endpoint = phone if target.to.startswith("+") else {"type": "sip", "uri": target.to}
        connect = {"action": "connect", "timeout": str(round(target.timeout_s)), "endpoint": [endpoint]}
        if self._options.from_number:
            connect["from"] = self._options.from_number.lstrip("+")
        body = {"action": "transfer", "destination": {"type": "ncco", "ncco": [connect]}}
        await self._send("PUT", f"/v1/calls/{quote(call, safe='')}", body)
        return TransferResult(TransferReason.COMPLETED)

    async def _send(self, method: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        from vonage_jwt import JwtClient

        if not self._private_key:
            raise ApiFault(0, "no_private_key")
        made: str | bytes = JwtClient(self._application_id, self._private_key).generate_application_jwt()
        bearer = made.decode() if isinstance(made, bytes) else made
        return await self.api.send(method, path, body=body, bearer=bearer)

    async def aclose(self) -> None:
        await self.api.aclose()
