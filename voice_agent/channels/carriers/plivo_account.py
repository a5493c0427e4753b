"""A Plivo account: its signature, its webhooks and what is asked of its REST API.

Plivo signs URL, form and a nonce with the account's auth token (V3), and the upgrade to a stream as well; the stream's
URL holds the call's token.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from voice_agent.channels.carriers.api import RestApi
from voice_agent.channels.carriers.carrier import (
    Answer,
    Event,
    Placement,
    Progress,
    Redirected,
    Ringing,
    Unsigned,
    international,
    xml,
)
from voice_agent.channels.carriers.plivo import CHANNEL, PlivoSerializer
from voice_agent.channels.carriers.replays import Once
from voice_agent.channels.carriers.request import CarrierRequest
from voice_agent.channels.outbound import DialOutcome
from voice_agent.config import PlivoOptions
from voice_agent.transfers import NOT_SUPPORTED, TransferReason, TransferResult, TransferTarget

ANSWER, HANGUP, MACHINE, TRANSFER = "/plivo/answer", "/plivo/hangup", "/plivo/machine", "/plivo/transfer"
STREAM = "/plivo/stream"
NONCE_S = 600.0
"""How long a nonce is remembered; there is no time in the signature."""
MAX_TRANSFERS = 1000
_SIGNATURE = "x-plivo-signature-v3"
_OUTCOMES = {
    "busy": DialOutcome.BUSY,
    "no-answer": DialOutcome.NO_ANSWER,
    "timeout": DialOutcome.NO_ANSWER,
    "cancel": DialOutcome.NO_ANSWER,
    "failed": DialOutcome.TRUNK_ERROR,
}


class PlivoCarrier:
    """Implements `voice_agent.channels.carriers.carrier.Carrier`."""

    channel = CHANNEL
    stream_path = STREAM
    leg_ends_with_stream = False
    can_press = True

    def __init__(self, options: PlivoOptions, public_url: str, auth_id: str, auth_token: str) -> None:
        self._options, self._public_url, self._auth_token = options, public_url.rstrip("/"), auth_token
        self._account = f"/v1/Account/{quote(auth_id, safe='')}"
        self._once = Once(NONCE_S)
        self._going: dict[str, TransferTarget] = {}
        self.api = RestApi(options.api_url, auth=(auth_id, auth_token))
        self.hooks: Mapping[str, Callable[[CarrierRequest], Event]] = {
            ANSWER: self._answered,
            HANGUP: self._hung_up,
            MACHINE: self._machine,
            TRANSFER: lambda request: Redirected(request.form().get("CallUUID", "")),
        }

    @property
    def can_dial(self) -> bool:
        return bool(self._options.from_number)

    def serializer(self) -> PlivoSerializer:
        return PlivoSerializer()

    # What Plivo sends

    def check(self, request: CarrierRequest, now_s: float) -> None:
        self._check(request, request.form() if request.method == "POST" else {}, now_s)

    def check_upgrade(self, request: CarrierRequest, now_s: float) -> None:
        if not self.stream_token(request):
            raise Unsigned("no token")
        self._check(request, {}, now_s)

    def stream_token(self, request: CarrierRequest) -> str:
        return request.query.get("token", "")

    def _check(self, request: CarrierRequest, form: Mapping[str, str], now_s: float) -> None:
        from plivo.utils import signature_v3

        shown, nonce = request.headers.get(_SIGNATURE, ""), request.headers.get(f"{_SIGNATURE}-nonce", "")
        if not shown or not nonce:
            raise Unsigned("no signature")
        post = request.method == "POST"
        made = (signature_v3.construct_post_url if post else signature_v3.construct_get_url)(request.url, dict(form))
        right = signature_v3.get_signature_v3(self._auth_token, made.decode(), nonce)
        # Several keys may sign at once. The package's own comparison is not in constant time.
        if not any(hmac.compare_digest(right, one.strip().encode("latin-1")) for one in shown.split(",")):
            raise Unsigned("made with another token, or for another URL: see server.public_url")
        if not self._once.first(nonce, now_s):
            raise Unsigned("shown before")

    @staticmethod
    def _answered(request: CarrierRequest) -> Event:
        form = request.form()
        call = form.get("CallUUID", "")
        return Ringing(call, international(form.get("From", "")), international(form.get("To", ""))) if call else None

    @staticmethod
    def _hung_up(request: CarrierRequest) -> Event:
        form = request.form()
        outcome = _OUTCOMES.get(form.get("CallStatus", ""))
        if form.get("HangupCauseName", "").lower() in ("rejected", "call rejected"):
            outcome = DialOutcome.DECLINED
        return Progress(form["CallUUID"], outcome, over=True) if form.get("CallUUID") else None

    @staticmethod
    def _machine(request: CarrierRequest) -> Event:
        form = request.form()
        machine = form.get("Machine", "").lower() == "true"
        return (
            Progress(form["CallUUID"], answered_by="machine" if machine else "human") if form.get("CallUUID") else None
        )

    # What Plivo is told

    async def answer(self, ringing: Ringing, token: str) -> Answer:
        url = "ws" + self._public_url.removeprefix("http") + f"{STREAM}?token={token}"
        options = 'bidirectional="true" keepCallAlive="true" audioTrack="inbound" contentType="audio/x-mulaw;rate=8000"'
        return xml(f"<Response><Stream {options}>{escape(url)}</Stream></Response>")

    def redirect(self, call: str) -> Answer:
        target = self._going.pop(call, None)
        if target is None:
            return Answer(status=404)
        noun, to = ("Number", target.to.lstrip("+")) if target.to.startswith("+") else ("User", target.to)
        return xml(
            f'<Response><Dial timeout="{round(target.timeout_s)}"><{noun}>{escape(to)}</{noun}></Dial></Response>'
        )

    async def place(self, placement: Placement) -> str:
        body: dict[str, Any] = {
            "from": self._options.from_number.lstrip("+"),
            "to": placement.to.lstrip("+"),
            "answer_url": self._public_url + ANSWER,
            "answer_method": "POST",
            "hangup_url": self._public_url + HANGUP,
            "hangup_method": "POST",
            "ring_timeout": round(placement.ring_timeout_s),
        }
        if self._options.detect_machines:
            body |= {"machine_detection": "true", "machine_detection_url": self._public_url + MACHINE}
        answer = await self.api.send("POST", f"{self._account}/Call/", body=body)
        return str(answer.get("request_uuid", ""))

    async def hang_up(self, call: str) -> None:
        await self.api.send("DELETE", f"{self._account}/Call/{quote(call, safe='')}/")

    async def press(self, call: str, keys: str) -> None:
        body = {"digits": keys, "leg": "aleg"}
        await self.api.send("POST", f"{self._account}/Call/{quote(call, safe='')}/DTMF/", body=body)

    async def transfer(self, call: str, target: TransferTarget) -> TransferResult:
        if target.warm:
            return NOT_SUPPORTED
        if len(self._going) >= MAX_TRANSFERS:
            del self._going[next(iter(self._going))]
        self._going[call] = target
        body = {"legs": "aleg", "aleg_url": self._public_url + TRANSFER, "aleg_method": "POST"}
        try:
            await self.api.send("POST", f"{self._account}/Call/{quote(call, safe='')}/", body=body)
        except BaseException:
            self._going.pop(call, None)
            raise
        return TransferResult(TransferReason.COMPLETED)

    async def aclose(self) -> None:
        await self.api.aclose()
