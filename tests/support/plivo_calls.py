"""Plivo, as its documentation describes it."""

from __future__ import annotations

import base64
import secrets
import uuid
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
from voice_agent.channels.carriers.plivo_account import ANSWER as PLIVO_ANSWER
from voice_agent.channels.carriers.plivo_account import STREAM as PLIVO_STREAM


class PlivoCall(CarrierCall):
    """``<Stream bidirectional="true">``."""

    channel, answer_path, stream_path = "plivo", PLIVO_ANSWER, PLIVO_STREAM
    token_in_upgrade = True
    required = ("PLIVO_AUTH_ID", "PLIVO_AUTH_TOKEN")
    echoes_cleared_marks = False
    sequence = 0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.stream_id = str(uuid.uuid4())

    @classmethod
    def new_call(cls) -> str:
        return str(uuid.uuid4())

    @classmethod
    def signed(
        cls, method: str, url: str, form: Mapping[str, str], secret: str | None, nonce: str = ""
    ) -> dict[str, str]:
        from plivo.utils import signature_v3

        if secret == "":
            return {}
        nonce = nonce or str(secrets.randbelow(10**20))
        make = signature_v3.construct_post_url if method == "POST" else signature_v3.construct_get_url
        base = make(url, dict(form)).decode()
        signature = signature_v3.get_signature_v3(secret or SECRETS["PLIVO_AUTH_TOKEN"], base, nonce).decode()
        return {"X-Plivo-Signature-V3": signature, "X-Plivo-Signature-V3-Nonce": nonce}

    @classmethod
    async def ask(cls, address: str, call: str, secret: str | None) -> httpx.Response:
        form = {"CallUUID": call, "From": CALLER[1:], "To": CALLED[1:], "CallStatus": "ringing", "Event": "StartApp"}
        headers = cls.signed("POST", PUBLIC + cls.answer_path, form, secret)
        return await post(address, cls.answer_path, headers, data=form)

    @classmethod
    async def token_of(cls, response: httpx.Response, call: str) -> str:
        stream = ElementTree.fromstring(response.text).find("Stream")
        assert stream is not None
        assert stream.attrib["bidirectional"] == stream.attrib["keepCallAlive"] == "true"
        return (stream.text or "").removeprefix(f"wss://agent.example.com{cls.stream_path}?token=")

    @classmethod
    def upgrade_headers(cls, token: str, secret: str | None) -> dict[str, str]:
        return cls.signed("GET", f"wss://agent.example.com{cls.stream_path}{cls.query(token)}", {}, secret)

    def event(self, kind: str, /, **fields: Any) -> dict[str, Any]:
        self.sequence += 1
        return {"event": kind, "sequenceNumber": self.sequence, "streamId": self.stream_id, **fields}

    dial_path = f"/v1/Account/{SECRETS['PLIVO_AUTH_ID']}/Call/"

    @classmethod
    async def token_placed(cls, address: str, call: str) -> str:
        return await cls.token_of(await cls.ask(address, call, None), call)

    @classmethod
    async def tell(cls, address: str, call: str, what: str, secret: str | None = None) -> httpx.Response:
        status = {"busy": "busy", "no_answer": "no-answer", "ended": "completed"}.get(what, "in-progress")
        form = {"CallUUID": call, "CallStatus": status} | ({"Machine": "true"} if what == "machine" else {})
        path = "/plivo/machine" if what == "machine" else "/plivo/hangup"
        return await post(address, path, cls.signed("POST", PUBLIC + path, form, secret), data=form)

    async def begin(self) -> None:
        media = {"encoding": "audio/x-mulaw", "sampleRate": 8000}
        start = {"callId": self.call, "streamId": self.stream_id, "tracks": ["inbound"], "mediaFormat": media}
        await self.send({"event": "start", "sequenceNumber": 0, "start": start, "extra_headers": "{}"})

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        assert isinstance(message, dict), "Plivo takes JSON only"
        match message["event"]:
            case "playAudio":
                media = message["media"]
                assert (media["contentType"], media["sampleRate"]) == ("audio/x-mulaw", 8000)
                self.play(ulaw_decode(base64.b64decode(media["payload"], validate=True)))
            case "clearAudio":
                assert message["streamId"] == self.stream_id
                self.drop()
                self.say(self.event("clearedAudio"))
            case "checkpoint":
                assert message["streamId"] == self.stream_id
                self.mark(message["name"], self.event("playedStream", name=message["name"]))
            case other:
                raise AssertionError(f"Plivo knows no {other}")

    async def speak(self, pcm: bytes) -> None:
        pcm = resample(pcm, 16000, 8000)
        for at in range(0, len(pcm), 320):
            await self.due(at // 320)
            payload = base64.b64encode(ulaw_encode(pcm[at : at + 320].ljust(320, b"\0"))).decode()
            media = {"track": "inbound", "timestamp": str(at), "chunk": at // 320 + 1, "payload": payload}
            await self.send(self.event("media", media=media))

    async def press(self, digit: str) -> None:
        await self.send(self.event("dtmf", dtmf={"track": "inbound", "digit": digit, "timestamp": "1"}))
