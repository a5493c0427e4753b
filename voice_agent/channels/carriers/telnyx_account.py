"""A Telnyx account (Call Control): its signature, its webhooks and what is asked of its REST API.

Webhooks are signed with Ed25519 over the time of day and the body. The upgrade to a stream is not signed: it shows the
call's token, in a header where Telnyx can be told to send one (calls that we place), else in the URL.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from voice_agent.channels.carriers.api import ApiFault, RestApi
from voice_agent.channels.carriers.carrier import Answer, Event, Placement, Progress, Ringing, StreamFailed, Unsigned
from voice_agent.channels.carriers.replays import Once
from voice_agent.channels.carriers.request import CarrierRequest
from voice_agent.channels.carriers.telnyx import CHANNEL, TelnyxSerializer
from voice_agent.channels.outbound import DialOutcome
from voice_agent.channels.streaming.fields import object_at, text_at
from voice_agent.config import TelnyxOptions
from voice_agent.transfers import NOT_SUPPORTED, TransferReason, TransferResult, TransferTarget

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EVENTS, STREAM = "/telnyx/events", "/telnyx/stream"
TOLERANCE_S = 300.0
"""How old a webhook may be, and how far clocks may be apart: what Telnyx's own package allows."""
_TOKEN_HEADER = "x-telnyx-streaming-auth-token"
_OUTCOMES = {
    "user_busy": DialOutcome.BUSY,
    "call_rejected": DialOutcome.DECLINED,
    "no_answer": DialOutcome.NO_ANSWER,
    "timeout": DialOutcome.NO_ANSWER,
    "originator_cancel": DialOutcome.NO_ANSWER,
    "not_found": DialOutcome.UNREACHABLE,
}


class TelnyxCarrier:
    """Implements `voice_agent.channels.carriers.carrier.Carrier`. Raises `ValueError` for a key that is none."""

    channel = CHANNEL
    stream_path = STREAM
    leg_ends_with_stream = False
    can_press = True

    def __init__(self, options: TelnyxOptions, public_url: str, public_key: str, api_key: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self._options, self._public_url = options, public_url.rstrip("/")
        self._key: Ed25519PublicKey = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        self._once = Once(2 * TOLERANCE_S)
        self.api = RestApi(options.api_url, bearer=api_key)
        self.hooks: Mapping[str, Callable[[CarrierRequest], Event]] = {EVENTS: self._event}

    @property
    def can_dial(self) -> bool:
        return bool(self._options.from_number and self._options.connection_id)

    def serializer(self) -> TelnyxSerializer:
        return TelnyxSerializer()

    # What Telnyx sends

    def check(self, request: CarrierRequest, now_s: float) -> None:
        from cryptography.exceptions import InvalidSignature

        signature, made = (
            request.headers.get("telnyx-signature-ed25519", ""),
            request.headers.get("telnyx-timestamp", ""),
        )
        if not signature or not made.isascii() or not made.isdecimal() or len(made) > 12:
            raise Unsigned("no signature")
        try:
            proof = base64.b64decode(signature, validate=True)
            self._key.verify(proof, made.encode() + b"|" + request.body)
        except (InvalidSignature, ValueError):
            raise Unsigned("made with another key, or for another body") from None
        if abs(now_s - int(made)) > TOLERANCE_S:
            raise Unsigned("not made just now")
        # Of what was decoded: in Base64 the same signature can be written in several ways.
        if not self._once.first(hashlib.sha256(proof).hexdigest(), now_s):
            raise Unsigned("shown before")

    def check_upgrade(self, request: CarrierRequest, now_s: float) -> None:
        if not self.stream_token(request):
            raise Unsigned("no token")

    def stream_token(self, request: CarrierRequest) -> str:
        return request.headers.get(_TOKEN_HEADER) or request.query.get("token", "")

    @staticmethod
    def _event(request: CarrierRequest) -> Event:
        data = object_at(request.object(), "data")
        payload = object_at(data, "payload")
        call = text_at(payload, "call_control_id")
        if not call:
            return None
        match text_at(data, "event_type"):
            case "call.initiated" if text_at(payload, "direction") == "incoming":
                return Ringing(call, text_at(payload, "from"), text_at(payload, "to"))
            case "call.hangup":
                cause = text_at(payload, "hangup_cause")
                failed = None if cause == "normal_clearing" else _OUTCOMES.get(cause, DialOutcome.TRUNK_ERROR)
                return Progress(call, failed, over=True)
            case "call.streaming.failed":
                return StreamFailed(call)
            case "call.machine.detection.ended":
                result = text_at(payload, "result")
                return Progress(call, answered_by=result if result in ("human", "machine") else "unknown")
        return None

    # What Telnyx is told

    def _streamed(self, query: str = "") -> dict[str, Any]:
        codec = self._options.codec
        streamed = {
            "stream_url": "ws" + self._public_url.removeprefix("http") + STREAM + query,
            "stream_track": "inbound_track",
            "stream_codec": codec,
            "stream_bidirectional_mode": "rtp",
            "stream_bidirectional_codec": codec,
        }
        return streamed | ({"stream_bidirectional_sampling_rate": 16000} if codec == "L16" else {})

    async def answer(self, ringing: Ringing, token: str) -> Answer:
        await self._act(ringing.call, "answer", self._streamed(f"?token={token}"))
        return Answer()

    def redirect(self, call: str) -> Answer:
        return Answer(status=404)

    async def place(self, placement: Placement) -> str:
        body = {
            "connection_id": self._options.connection_id,
            "to": placement.to,
            "from": self._options.from_number,
            "timeout_secs": round(placement.ring_timeout_s),
            "webhook_url": self._public_url + EVENTS,
            "stream_auth_token": placement.token,
            **self._streamed(),
        }
        if self._options.detect_machines:
            body["answering_machine_detection"] = "detect"
        answer = await self.api.send("POST", "/v2/calls", body=body)
        return text_at(object_at(answer, "data"), "call_control_id")

    async def hang_up(self, call: str) -> None:
        await self._act(call, "hangup", {})

    async def press(self, call: str, keys: str) -> None:
        await self._act(call, "send_dtmf", {"digits": keys})

    async def transfer(self, call: str, target: TransferTarget) -> TransferResult:
        if target.warm:
            return NOT_SUPPORTED
        try:
            await self._act(call, "transfer", {"to": target.to, "timeout_secs": max(5, round(target.timeout_s))})
        except ApiFault as fault:
            return fault.transfer_result
        return TransferResult(TransferReason.COMPLETED)

    async def _act(self, call: str, action: str, body: Mapping[str, Any]) -> None:
        await self.api.send("POST", f"/v2/calls/{quote(call, safe='')}/actions/{action}", body=dict(body))

    async def aclose(self) -> None:
        await self.api.aclose()
