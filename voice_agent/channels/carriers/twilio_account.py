"""A Twilio account: its signature, its webhooks and what is asked of its REST API.

Twilio signs the URL as seen from outside and the fields of the form with the account's auth token, and the upgrade to a
stream as well. There is no time in it: what comes twice is told by the id of the call, and a stream by its token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from voice_agent.channels.carriers.api import ApiFault, RestApi
from voice_agent.channels.carriers.carrier import Answer, Event, Placement, Progress, Ringing, Unsigned, xml
from voice_agent.channels.carriers.request import CarrierRequest
from voice_agent.channels.carriers.twilio import CHANNEL, TwilioSerializer
from voice_agent.channels.outbound import DialOutcome
from voice_agent.channels.streaming.facts import TOKEN_PARAMETER
from voice_agent.config import TwilioOptions
from voice_agent.transfers import NOT_SUPPORTED, TransferReason, TransferResult, TransferTarget

if TYPE_CHECKING:
    from twilio.request_validator import RequestValidator

VOICE, STATUS, STREAM = "/twilio/voice", "/twilio/status", "/twilio/stream"
_OUTCOMES = {
    "busy": DialOutcome.BUSY,
    "no-answer": DialOutcome.NO_ANSWER,
    "failed": DialOutcome.TRUNK_ERROR,
    "canceled": DialOutcome.NO_ANSWER,
}
_ENDED = ("completed", *_OUTCOMES)
_NOT_FOUND = "404"
"""SIP status of a call to a number that does not exist."""


class TwilioCarrier:
    """Implements `voice_agent.channels.carriers.carrier.Carrier`."""

    channel = CHANNEL
    stream_path = STREAM
    leg_ends_with_stream = True
    can_press = False

    def __init__(self, options: TwilioOptions, public_url: str, account_sid: str, auth_token: str) -> None:
        from twilio.request_validator import RequestValidator

        self._options, self._public_url = options, public_url.rstrip("/")
        self._validator: RequestValidator = RequestValidator(auth_token)
        self._account = f"/2010-04-01/Accounts/{quote(account_sid, safe='')}"
        self.api = RestApi(options.api_url, auth=(account_sid, auth_token))
        self.hooks: Mapping[str, Callable[[CarrierRequest], Event]] = {VOICE: self._voice, STATUS: self._status}

    @property
    def can_dial(self) -> bool:
        return bool(self._options.from_number)

    def serializer(self) -> TwilioSerializer:
        return TwilioSerializer()

    # What Twilio sends

    def check(self, request: CarrierRequest, now_s: float) -> None:
        self._check(request, request.form())

    def check_upgrade(self, request: CarrierRequest, now_s: float) -> None:
        self._check(request, {})

    def stream_token(self, request: CarrierRequest) -> str:
        return ""

    def _check(self, request: CarrierRequest, form: Mapping[str, str]) -> None:
        signature = request.headers.get("x-twilio-signature", "")
        if not signature:
            raise Unsigned("no signature")
        if not self._validator.validate(request.url, dict(form), signature):
            raise Unsigned("made with another token, or for another URL: see server.public_url")

    @staticmethod
    def _voice(request: CarrierRequest) -> Event:
        form = request.form()
        call = form.get("CallSid", "")
        return Ringing(call, form.get("From", ""), form.get("To", "")) if call else None

    @staticmethod
    def _status(request: CarrierRequest) -> Event:
        form = request.form()
        call, status = form.get("CallSid", ""), form.get("CallStatus", "")
        if not call:
            return None
        outcome = _OUTCOMES.get(status)
        if status == "failed" and form.get("SipResponseCode") == _NOT_FOUND:
            outcome = DialOutcome.UNREACHABLE
        return Progress(call, outcome, _answered_by(form.get("AnsweredBy", "")), over=status in _ENDED)

    # What Twilio is told

    async def answer(self, ringing: Ringing, token: str) -> Answer:
        return xml(self._stream(token))

    def redirect(self, call: str) -> Answer:
        return Answer(status=404)

    def _stream(self, token: str) -> str:
        url = "ws" + self._public_url.removeprefix("http") + STREAM
        return (
            f"<Response><Connect><Stream url={quoteattr(url)}>"
            f"<Parameter name={quoteattr(TOKEN_PARAMETER)} value={quoteattr(token)}/>"
            "</Stream></Connect></Response>"
        )

    async def place(self, placement: Placement) -> str:
        status = self._public_url + STATUS
        form = {
            "To": placement.to,
            "From": self._options.from_number,
            "Twiml": self._stream(placement.token),
            "Timeout": str(round(placement.ring_timeout_s)),
            "StatusCallback": status,
            "StatusCallbackEvent": ["answered", "completed"],
        }
        if self._options.detect_machines:
            form |= {"MachineDetection": "Enable", "AsyncAmd": "true", "AsyncAmdStatusCallback": status}
        return str((await self.api.send("POST", f"{self._account}/Calls.json", form=form)).get("sid", ""))

    async def aclose(self) -> None:
        await self.api.aclose()

    async def hang_up(self, call: str) -> None:
        await self._update(call, Status="completed")

    async def press(self, call: str, keys: str) -> None:
        # `<Play digits>` would end the stream, and with it the call.
        raise ApiFault(0, "only tones")

    async def transfer(self, call: str, target: TransferTarget) -> TransferResult:
        if target.warm:
            return NOT_SUPPORTED
        noun = "Number" if target.to.startswith("+") else "Sip"
        ring_s = round(target.timeout_s)
        dial = f'<Dial timeout="{ring_s}" answerOnBridge="true"><{noun}>{escape(target.to)}</{noun}></Dial>'
        await self._update(call, Twiml=f"<Response>{dial}</Response>")
        return TransferResult(TransferReason.COMPLETED)

    async def _update(self, call: str, **form: str) -> None:
        await self.api.send("POST", f"{self._account}/Calls/{quote(call, safe='')}.json", form=form)


def _answered_by(text: str) -> str:
    if not text:
        return ""
    return "human" if text == "human" else "machine" if text.startswith(("machine", "fax")) else "unknown"
