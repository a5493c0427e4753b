"""Twilio, as its documentation describes it."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import httpx

from tests.support.carrier_lines import (
    CALLED,
    CALLER,
    PUBLIC,
    SECRETS,
    CarrierCall,
    post,
)
from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample
from voice_agent.channels.carriers.twilio_account import STREAM as TWILIO_STREAM
from voice_agent.channels.carriers.twilio_account import VOICE as TWILIO_VOICE


def twilio_signature(url: str, form: Mapping[str, str], secret: str | None = None) -> dict[str, str]:
    """Return the headers with which Twilio proves a request; none for an empty secret."""
    from twilio.request_validator import RequestValidator

    token = SECRETS["TWILIO_AUTH_TOKEN"] if secret is None else secret
    return {"X-Twilio-Signature": RequestValidator(token).compute_signature(url, dict(form))} if token else {}


class TwilioCall(CarrierCall):
    """``<Connect><Stream>``."""

    channel, answer_path, stream_path = "twilio", TWILIO_VOICE, TWILIO_STREAM
    required = ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.stream_sid = "MZ" + secrets.token_hex(16)
        self.sequence = 0

    @classmethod
    def new_call(cls) -> str:
        return "CA" + secrets.token_hex(16)

    @classmethod
    def form(cls, call: str) -> dict[str, str]:
        return {
            "CallSid": call,
            "AccountSid": SECRETS["TWILIO_ACCOUNT_SID"],
            "From": CALLER,
            "To": CALLED,
            "CallStatus": "ringing",
            "Direction": "inbound",
            "ApiVersion": "2010-04-01",
        }

    @classmethod
    async def ask(cls, address: str, call: str, secret: str | None) -> httpx.Response:
        form = cls.form(call)
        return await post(address, cls.answer_path, twilio_signature(PUBLIC + cls.answer_path, form, secret), data=form)

    @classmethod
    async def token_of(cls, response: httpx.Response, call: str) -> str:
        stream = ElementTree.fromstring(response.text).find("Connect/Stream")
        assert stream is not None
        assert stream.attrib["url"] == "wss://agent.example.com" + cls.stream_path
        return {p.attrib["name"]: p.attrib["value"] for p in stream.iter("Parameter")}["token"]

    @classmethod
    def upgrade_headers(cls, token: str, secret: str | None) -> dict[str, str]:
        return twilio_signature("wss://agent.example.com" + cls.stream_path, {}, secret)

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        self.sequence += 1
        return {"event": name, "sequenceNumber": str(self.sequence), "streamSid": self.stream_sid, **fields}

    dial_path = f"/2010-04-01/Accounts/{SECRETS['TWILIO_ACCOUNT_SID']}/Calls.json"

    @classmethod
    async def token_placed(cls, address: str, call: str) -> str:
        twiml = cls.api.last(cls.dial_path)["Twiml"]
        stream = ElementTree.fromstring(twiml).find("Connect/Stream")
        assert stream is not None
        return str(stream[0].attrib["value"])

    @classmethod
    async def tell(cls, address: str, call: str, what: str, secret: str | None = None) -> httpx.Response:
        status = {"busy": "busy", "no_answer": "no-answer", "ended": "completed"}.get(what, "in-progress")
        form = {**cls.form(call), "CallStatus": status, "Direction": "outbound-api"}
        if what == "machine":
            form["AnsweredBy"] = "machine_start"
        headers = twilio_signature(PUBLIC + "/twilio/status", form, secret)
        return await post(address, "/twilio/status", headers, data=form)

    async def begin(self) -> None:
        await self.send({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        start = {
            "streamSid": self.stream_sid,
            "accountSid": SECRETS["TWILIO_ACCOUNT_SID"],
            "callSid": self.call,
            "tracks": ["inbound"],
            "customParameters": {"token": self.token},
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        }
        await self.send(self.event("start", start=start))

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        assert isinstance(message, dict), "Twilio takes JSON only"
        assert message["streamSid"] == self.stream_sid
        match message["event"]:
            case "media":
                self.play(ulaw_decode(base64.b64decode(message["media"]["payload"], validate=True)))
            case "clear":
                self.drop()
            case "mark":
                name = message["mark"]["name"]
                self.mark(name, self.event("mark", mark={"name": name}))
            case other:
                raise AssertionError(f"Twilio knows no {other}")

    async def speak(self, pcm: bytes) -> None:
        pcm = resample(pcm, 16000, 8000)
        for at in range(0, len(pcm), 320):
            await self.due(at // 320)
            payload = base64.b64encode(ulaw_encode(pcm[at : at + 320].ljust(320, b"\0"))).decode()
            media = {"track": "inbound", "chunk": str(at // 320 + 1), "timestamp": str(at // 16), "payload": payload}
            await self.send(self.event("media", media=media))

    async def press(self, digit: str) -> None:
        await self.send(self.event("dtmf", dtmf={"track": "inbound_track", "digit": digit}))

    async def hang_up(self) -> None:
        await self.send(self.event("stop", stop={"accountSid": SECRETS["TWILIO_ACCOUNT_SID"], "callSid": self.call}))
