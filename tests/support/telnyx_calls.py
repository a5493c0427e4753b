"""Telnyx, as its documentation describes it."""

from __future__ import annotations

import base64
import json
import secrets
import time
import uuid
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.carrier_lines import (
    CALLED,
    CALLER,
    TELNYX_KEY,
    CarrierCall,
    post,
)
from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample
from voice_agent.channels.carriers.telnyx_account import EVENTS as TELNYX_EVENTS
from voice_agent.channels.carriers.telnyx_account import STREAM as TELNYX_STREAM


class TelnyxCall(CarrierCall):
    """Call Control, with ``stream_bidirectional_mode: rtp``."""

    channel, answer_path, stream_path = "telnyx", TELNYX_EVENTS, TELNYX_STREAM
    token_in_upgrade = True
    required = ("TELNYX_PUBLIC_KEY", "TELNYX_API_KEY")
    sequence = 0

    @classmethod
    def new_call(cls) -> str:
        return "v3:" + secrets.token_urlsafe(32)

    @classmethod
    def signed(cls, body: bytes, secret: str | None, made: int | None = None) -> dict[str, str]:
        if secret == "":
            return {}
        key = TELNYX_KEY if secret is None else Ed25519PrivateKey.generate()
        stamp = str(int(time.time()) if made is None else made)
        signature = base64.b64encode(key.sign(stamp.encode() + b"|" + body)).decode()
        return {"telnyx-signature-ed25519": signature, "telnyx-timestamp": stamp}

    @classmethod
    def webhook(cls, event: str, call: str, **payload: Any) -> bytes:
        told = {"call_control_id": call, "from": CALLER, "to": CALLED, **payload}
        data = {"event_type": event, "id": str(uuid.uuid4()), "payload": told, "record_type": "event"}
        return json.dumps({"data": data, "meta": {"attempt": 1}}).encode()

    @classmethod
    async def ask(cls, address: str, call: str, secret: str | None) -> httpx.Response:
        body = cls.webhook("call.initiated", call, direction="incoming", state="parked")
        return await post(address, cls.answer_path, cls.signed(body, secret), content=body)

    @classmethod
    async def token_of(cls, response: httpx.Response, call: str) -> str:
        asked = cls.api.last(f"/v2/calls/{call}/actions/answer")
        assert asked["stream_bidirectional_mode"] == "rtp"
        return str(asked["stream_url"]).removeprefix(f"wss://agent.example.com{cls.stream_path}?token=")

    @classmethod
    def upgrade_headers(cls, token: str, secret: str | None) -> dict[str, str]:
        return {}

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        self.sequence += 1
        return {"event": name, "sequence_number": str(self.sequence), "stream_id": "32DE0DEA", **fields}

    dial_path = "/v2/calls"

    @classmethod
    async def token_placed(cls, address: str, call: str) -> str:
        return str(cls.api.last(cls.dial_path)["stream_auth_token"])

    @classmethod
    async def tell(cls, address: str, call: str, what: str, secret: str | None = None) -> httpx.Response:
        cause = {"busy": "user_busy", "no_answer": "timeout", "ended": "normal_clearing"}.get(what)
        if cause:
            body = cls.webhook("call.hangup", call, hangup_cause=cause, hangup_source="callee")
        else:
            body = cls.webhook("call.machine.detection.ended", call, result=what)
        return await post(address, cls.answer_path, cls.signed(body, secret), content=body)

    async def begin(self) -> None:
        await self.send({"event": "connected", "version": "1.0.0"})
        media = {"encoding": "PCMU", "sample_rate": 8000, "channels": 1}
        start = {"call_control_id": self.call, "from": CALLER, "to": CALLED, "media_format": media}
        await self.send(self.event("start", start=start))

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        assert isinstance(message, dict), "Telnyx takes JSON only"
        match message["event"]:
            case "media":
                self.play(ulaw_decode(base64.b64decode(message["media"]["payload"], validate=True)))
            case "clear":
                self.drop()
            case "mark":
                self.mark(message["mark"]["name"], self.event("mark", mark={"name": message["mark"]["name"]}))
            case other:
                raise AssertionError(f"Telnyx knows no {other}")

    async def speak(self, pcm: bytes) -> None:
        """Media comes out of order: each pair is swapped."""
        pcm = resample(pcm, 16000, 8000)
        pieces = [pcm[at : at + 320].ljust(320, b"\0") for at in range(0, len(pcm), 320)]
        numbered = list(enumerate(pieces, 1))
        for at in range(1, len(numbered) - 1, 2):
            numbered[at], numbered[at + 1] = numbered[at + 1], numbered[at]
        for chunk, piece in numbered:
            payload = base64.b64encode(ulaw_encode(piece)).decode()
            media = {"track": "inbound", "chunk": str(chunk), "timestamp": str(chunk * 20), "payload": payload}
            await self.send(self.event("media", media=media))

    async def press(self, digit: str) -> None:
        await self.send(self.event("dtmf", occurred_at="2026-01-01T00:00:00Z", dtmf={"digit": digit}))

    async def hang_up(self) -> None:
        await self.send(self.event("stop", stop={"call_control_id": self.call}))
