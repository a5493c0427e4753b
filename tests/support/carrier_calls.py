"""Carriers as their documentation describes them, in the terms of the channel contract.

Each signs its requests with its own package, asks by webhook what to do with a call, and streams it where it is told.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar
from xml.etree import ElementTree

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect

from tests.support.carrier_api import CarrierApi
from tests.support.exchanges import Exchange
from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample
from voice_agent.channels.carriers.plivo_account import ANSWER as PLIVO_ANSWER
from voice_agent.channels.carriers.plivo_account import STREAM as PLIVO_STREAM
from voice_agent.channels.carriers.telnyx_account import EVENTS as TELNYX_EVENTS
from voice_agent.channels.carriers.telnyx_account import STREAM as TELNYX_STREAM
from voice_agent.channels.carriers.twilio_account import STREAM as TWILIO_STREAM
from voice_agent.channels.carriers.twilio_account import VOICE as TWILIO_VOICE
from voice_agent.channels.carriers.vonage_account import ANSWER as VONAGE_ANSWER
from voice_agent.channels.carriers.vonage_account import STREAM as VONAGE_STREAM

PUBLIC = "https://agent.example.com"
CALLER, CALLED = "+15550100", "+15550199"


@cache
def vonage_private_key() -> str:
    """A key of an application, made for these tests."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, *form).decode()


TELNYX_KEY = Ed25519PrivateKey.from_private_bytes(b"a private key of 32 bytes, so it")
VONAGE_APPLICATION = "aaaaaaaa-bbbb-cccc-dddd-0123456789ab"
SECRETS = {
    "TWILIO_ACCOUNT_SID": "AC" + "0" * 32,
    "TWILIO_AUTH_TOKEN": "twilio-token-of-the-tests",
    "TELNYX_PUBLIC_KEY": base64.b64encode(TELNYX_KEY.public_key().public_bytes_raw()).decode(),
    "TELNYX_API_KEY": "KEY-of-the-tests",
    "PLIVO_AUTH_ID": "MA" + "0" * 18,
    "PLIVO_AUTH_TOKEN": "plivo-token-of-the-tests",
    "VONAGE_SIGNATURE_SECRET": "vonage-signature-secret-of-the-tests",
    "VONAGE_APPLICATION_ID": VONAGE_APPLICATION,
    "VONAGE_PRIVATE_KEY": vonage_private_key(),
}


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
        played_s: Agent audio that the caller has heard, or is still to hear.
        stops: When the agent was made to fall silent, by the loop's time, and `played_s` then.
    """

    api: ClassVar[CarrierApi]
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
        self.played_s = 0.0
        self.stops: list[tuple[float, float]] = []
        self._talks_since: float | None = None

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

    # Calls that the agent places

    dial_path: ClassVar[str]

    @classmethod
    async def token_placed(cls, address: str, call: str) -> str:
        """What the stream of a placed call is to show, once it is answered."""
        raise NotImplementedError

    @classmethod
    async def tell(cls, address: str, call: str, what: str, secret: str | None = None) -> httpx.Response:
        """Post the webhook that tells ``busy``, ``no_answer``, ``ended``, ``machine`` of a placed call."""
        raise NotImplementedError

    def mark(self, name: str, echo: Mapping[str, Any] | str) -> None:
        super().mark(name, echo)
        self._unplayed = [(handle, said) for handle, said in self._unplayed if not handle.cancelled()]
        self._unplayed.append((self._echoes[-1], echo))

    async def talk(self, pcm: bytes) -> None:
        """Say something in real time."""
        self._talks_since = asyncio.get_running_loop().time()
        try:
            await self.speak(pcm)
        finally:
            self._talks_since = None

    async def due(self, frame: int) -> None:
        """Wait until this frame of what is said has been spoken, where that matters."""
        if self._talks_since is not None:
            wait_s = self._talks_since + (frame + 1) * 0.02 - asyncio.get_running_loop().time()
            await asyncio.sleep(max(0.0, wait_s))

    def play(self, pcm: bytes) -> None:
        super().play(pcm)
        self.played_s += len(pcm) / 2 / self.rate

    def drop(self) -> None:
        now = asyncio.get_running_loop().time()
        self.played_s -= max(0.0, self.playing_until - now)
        self.stops.append((now, self.played_s))
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
    def query(cls, token: str) -> str:
        return f"?token={token}" if token else ""

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
    def query(cls, token: str) -> str:
        return f"?token={token}" if token else ""

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
