"""Vonage, as its documentation describes it."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from typing import Any

import httpx
import jwt

from tests.support.carrier_lines import (
    CALLED,
    CALLER,
    SECRETS,
    VONAGE_APPLICATION,
    CarrierCall,
    post,
)
from voice_agent.channels.carriers.vonage_account import ANSWER as VONAGE_ANSWER
from voice_agent.channels.carriers.vonage_account import STREAM as VONAGE_STREAM


class VonageCall(CarrierCall):
    """An NCCO that connects a ``websocket`` endpoint."""

    channel, answer_path, stream_path = "vonage", VONAGE_ANSWER, VONAGE_STREAM
    required = ("VONAGE_SIGNATURE_SECRET", "VONAGE_APPLICATION_ID")
    RATE = 16000

    @classmethod
    def new_call(cls) -> str:
        return str(uuid.uuid4())

    @classmethod
    def encode_audio(cls, pcm: bytes) -> bytes:
        return pcm

    @classmethod
    def signed(cls, body: bytes, secret: str | None, **claims: Any) -> dict[str, str]:
        if secret == "":
            return {}
        made = {
            "iss": "Vonage",
            "iat": int(time.time()),
            "jti": str(uuid.uuid4()),
            "application_id": VONAGE_APPLICATION,
            "api_key": "abcd1234",
        }
        if body:
            made["payload_hash"] = hashlib.sha256(body).hexdigest()
        key = secret or SECRETS["VONAGE_SIGNATURE_SECRET"]
        return {"Authorization": f"Bearer {jwt.encode({**made, **claims}, key, algorithm='HS256')}"}

    @classmethod
    async def ask(cls, address: str, call: str, secret: str | None) -> httpx.Response:
        told = {"from": CALLER[1:], "to": CALLED[1:], "uuid": call, "conversation_uuid": "CON-" + str(uuid.uuid4())}
        body = json.dumps(told).encode()
        return await post(address, cls.answer_path, cls.signed(body, secret), content=body)

    @classmethod
    async def token_of(cls, response: httpx.Response, call: str) -> str:
        [action] = response.json()
        [endpoint] = action["endpoint"]
        assert (action["action"], endpoint["type"]) == ("connect", "websocket")
        assert endpoint["uri"] == f"wss://agent.example.com{cls.stream_path}"
        assert endpoint["authorization"] == {"type": "vonage"}
        assert endpoint["headers"]["call"] == call
        return str(endpoint["headers"]["token"])

    @classmethod
    def upgrade_headers(cls, token: str, secret: str | None) -> dict[str, str]:
        return cls.signed(b"", secret)

    dial_path = "/v1/calls"

    @classmethod
    async def token_placed(cls, address: str, call: str) -> str:
        return str(cls.api.last(cls.dial_path)["ncco"][0]["endpoint"][0]["headers"]["token"])

    @classmethod
    async def tell(cls, address: str, call: str, what: str, secret: str | None = None) -> httpx.Response:
        status = {"busy": "busy", "no_answer": "unanswered", "ended": "completed"}.get(what, what)
        body = json.dumps({"uuid": call, "status": status, "direction": "outbound"}).encode()
        return await post(address, "/vonage/event", cls.signed(body, secret), content=body)

    async def begin(self) -> None:
        connected = {"event": "websocket:connected", "content-type": "audio/l16;rate=16000"}
        await self.send({**connected, "token": self.token, "call": self.call})

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        if isinstance(message, bytes):
            assert len(message) == 640, "Vonage takes 20 ms at a time"
            self.play(message)
            return
        assert isinstance(message, dict)
        match message["action"]:
            case "clear":
                self.drop()
                self.say({"event": "websocket:cleared"})
            case "notify":
                payload = message["payload"]
                self.mark(payload["name"], {"event": "websocket:notify", "payload": payload})
            case other:
                raise AssertionError(f"Vonage knows no {other}")

    async def press(self, digit: str) -> None:
        await self.send({"event": "websocket:dtmf", "digit": digit, "duration": 260})
