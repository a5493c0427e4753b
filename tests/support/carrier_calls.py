"""Carriers as their documentation describes them, in the terms of the channel contract.

Each signs its requests with its own package, asks by webhook what to do with a call, and streams it where it is told.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar
from xml.etree import ElementTree

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.support.exchanges import Exchange
from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.channels.carriers.twilio_account import STREAM as TWILIO_STREAM
from voice_agent.channels.carriers.twilio_account import VOICE as TWILIO_VOICE

PUBLIC = "https://agent.example.com"
CALLER, CALLED = "+15550100", "+15550199"
SECRETS = {"TWILIO_ACCOUNT_SID": "AC" + "0" * 32, "TWILIO_AUTH_TOKEN": "twilio-token-of-the-tests"}


class HungUpOn(Exception):
    """The webhook or the upgrade was refused. ``status`` is that of HTTP."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


class CarrierCall(Exchange):
    """One call as its carrier carries it.

    Attributes:
        call: The carrier's id of it.
        token: What it was told to show, or "".
    """

    channel: ClassVar[str]
    answer_path: ClassVar[str]
    stream_path: ClassVar[str]
    tells_marks = True
    call = token = ""
    echoes_cleared_marks = True
    token_in_upgrade: ClassVar[bool] = False
    """The token proves the upgrade; otherwise it comes with the first message, and the upgrade is signed."""
    required: ClassVar[tuple[str, ...]]
    """Without these variables the channel does not start."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._unplayed: list[tuple[Any, Any]] = []

    @classmethod
    async def ring(cls, address: str, *, secret: str | None = None, call: str = "") -> Any:
        """Somebody calls: ask what to do, connect the stream, begin. Raises `HungUpOn`."""
        call, token = await cls.announce(address, secret=secret, call=call)
        return await cls.stream(address, call, token, secret)

    @classmethod
    async def announce(cls, address: str, *, secret: str | None = None, call: str = "") -> tuple[str, str]:
        """Somebody calls: ask what to do. Returns the call, and the token that its stream is to show."""
        call = call or cls.new_call()
        response = await cls.ask(address, call, secret)
        if response.status_code != 200:
            raise HungUpOn(response.status_code)
        return call, await cls.token_of(response, call)

    @classmethod
    async def open_socket(cls, address: str, token: str, secret: str | None = None) -> ClientConnection:
        """Connect the stream of a call."""
        return await connect(
            f"ws://{address}{cls.stream_path}{cls.query(token)}",
            compression=None,
            proxy=None,
            additional_headers=cls.upgrade_headers(token, secret),
        )

    @classmethod
    async def stream(cls, address: str, call: str, token: str, secret: str | None = None) -> Any:
        """Connect the stream of a call, and begin."""
        carried = cls(await cls.open_socket(address, token, secret), cls.RATE)
        carried.call, carried.token = call, token
        await carried.begin()
        return carried

    RATE: ClassVar[int] = 8000

    @classmethod
    def new_call(cls) -> str:
        return secrets.token_hex(16)

    @classmethod
    def encode_audio(cls, pcm: bytes) -> bytes:
        return ulaw_encode(pcm)

    @classmethod
    async def ask(cls, address: str, call: str, secret: str | None) -> httpx.Response:
        """Post the webhook of a new call."""
        raise NotImplementedError

    @classmethod
    async def token_of(cls, response: httpx.Response, call: str) -> str:
        raise NotImplementedError

    @classmethod
    def query(cls, token: str) -> str:
        return ""

    @classmethod
    def upgrade_headers(cls, token: str, secret: str | None) -> dict[str, str]:
        raise NotImplementedError

    def mark(self, name: str, echo: Mapping[str, Any] | str) -> None:
        super().mark(name, echo)
        self._unplayed = [(handle, said) for handle, said in self._unplayed if not handle.cancelled()]
        self._unplayed.append((self._echoes[-1], echo))

    def drop(self) -> None:
        now = asyncio.get_running_loop().time()
        waiting = [echo for handle, echo in self._unplayed if handle.when() > now]
        self._unplayed.clear()
        super().drop()
        for echo in waiting if self.echoes_cleared_marks else ():
            self.say(echo)


async def post(address: str, path: str, headers: Mapping[str, str], **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"http://{address}{path}", headers=dict(headers), **body)


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
        from voice_agent.audio.resample import resample

        pcm = resample(pcm, 16000, 8000)
        for at in range(0, len(pcm), 320):
            payload = base64.b64encode(ulaw_encode(pcm[at : at + 320].ljust(320, b"\0"))).decode()
            media = {"track": "inbound", "chunk": str(at // 320 + 1), "timestamp": str(at // 16), "payload": payload}
            await self.send(self.event("media", media=media))

    async def press(self, digit: str) -> None:
        await self.send(self.event("dtmf", dtmf={"track": "inbound_track", "digit": digit}))

    async def hang_up(self) -> None:
        await self.send(self.event("stop", stop={"accountSid": SECRETS["TWILIO_ACCOUNT_SID"], "callSid": self.call}))
