"""Telephone exchanges as their documentation describes them, in the terms of the channel contract.

Each plays what it is sent at the speed of speech, answers marks when it comes to them, and drops what it has not played
when it is told to.
"""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from voice_agent.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode
from voice_agent.audio.resample import resample


class Exchange:
    """What exchanges have in common.

    Attributes:
        received: All messages, in order; texts as objects where they are JSON.
        arrivals: The loop's time of each.
        hung_up: The agent has ended the call, in the exchange's own words.
        playing_until: When all that was sent, and not dropped, has been played.
    """

    path: ClassVar[str]
    subprotocol: ClassVar[str | None] = None
    reports_position = tells_marks = False
    can_clear = True

    def __init__(self, socket: ClientConnection, rate: int) -> None:
        self.socket, self.rate = socket, rate
        self.received: list[bytes | str | dict[str, Any]] = []
        self.arrivals: list[float] = []
        self.closed_with: int | None = None
        self.clears, self.marks = 0, list[str]()
        self.hung_up = False
        self.playing_until = 0.0
        self._kept = b""
        self._echoes: list[asyncio.TimerHandle] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._reader = asyncio.get_running_loop().create_task(self._read(), name="test.exchange")

    @classmethod
    async def dial(cls, address: str, query: str = "", rate: int = 8000, **options: Any) -> Any:
        offered = [Subprotocol(cls.subprotocol)] if cls.subprotocol else None
        socket = await connect(
            f"ws://{address}{cls.path}{query}", compression=None, subprotocols=offered, proxy=None, **options
        )
        exchange = cls(socket, rate)
        await exchange.begin()
        return exchange

    async def begin(self) -> None:
        """Say which call it is."""
        raise NotImplementedError

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        """Act on one message of the agent's."""
        raise NotImplementedError

    async def _read(self) -> None:
        try:
            async for message in self.socket:
                read = _object(message) if isinstance(message, str) else message
                self.received.append(read)
                self.arrivals.append(asyncio.get_running_loop().time())
                self.take(read)
        except ConnectionClosed:
            pass
        for echo in self._echoes:
            echo.cancel()
        self.closed_with = self.socket.close_code

    def play(self, pcm: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.playing_until = max(self.playing_until, now) + len(pcm) / 2 / self.rate
        self._kept += pcm

    def mark(self, name: str, echo: Mapping[str, Any] | str) -> None:
        if not name.startswith("drain"):
            self.marks.append(name)
        delay_s = max(0.0, self.playing_until - asyncio.get_running_loop().time())
        self._echoes.append(asyncio.get_running_loop().call_later(delay_s, self.say, echo))

    def drop(self) -> None:
        self.clears += 1
        self._kept, self.playing_until = b"", 0.0
        for echo in self._echoes:
            echo.cancel()
        self._echoes.clear()

    def say(self, message: Mapping[str, Any] | str | bytes) -> None:
        task = asyncio.get_running_loop().create_task(self.send(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def send(self, message: Mapping[str, Any] | str | bytes) -> None:
        with suppress(ConnectionClosed):
            await self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def encode(self, pcm: bytes) -> bytes:
        return pcm

    @property
    def audio(self) -> bytes:
        return self._kept if self.rate == 16000 else resample(self._kept, self.rate, 16000)

    @property
    def texts(self) -> list[str | dict[str, Any]]:
        return [message for message in self.received if not isinstance(message, bytes)]

    @property
    def over(self) -> bool:
        return self.closed_with is not None

    async def speak(self, pcm: bytes) -> None:
        pcm = pcm if self.rate == 16000 else resample(pcm, 16000, self.rate)
        size = self.rate // 50 * 2
        for at in range(0, len(pcm), size):
            await self.send(self.encode(pcm[at : at + size].ljust(size, b"\0")))

    async def report_played(self, ms: float) -> None:
        raise NotImplementedError

    async def hang_up(self) -> None:
        await self.socket.close()

    async def vanish(self) -> None:
        self.socket.transport.abort()
        await self._reader

    async def close(self) -> None:
        await self.socket.close()
        await self._reader


class Asterisk(Exchange):
    """``Dial(WebSocket/connection/c(CODEC)f(json))``; set ``codec`` and ``json`` in a subclass."""

    path = "/asterisk/media"
    subprotocol = "media"
    codec: ClassVar[str] = "slin"
    json: ClassVar[bool] = True
    variables: ClassVar[Mapping[str, str]] = {"DIALEDPEERNUMBER": "agent/c(slin)"}

    @property
    def tells_marks(self) -> bool:  # type: ignore[override]
        return self.json

    def event(self, name: str, **fields: Any) -> str:
        if self.json:
            return json.dumps({"event": name, "channel_id": "pbx1-1761245643.1", **fields})
        return " ".join([name, *(f"{key}:{value}" for key, value in fields.items())])

    async def begin(self) -> None:
        size = self.rate // 50 * (1 if self.codec in ("ulaw", "alaw") else 2)
        told: dict[str, Any] = {"connection_id": "e226e283", "channel": "WebSocket/agent/0x5140001a0040"}
        told |= {"format": self.codec, "optimal_frame_size": size, "ptime": 20}
        if self.json:
            told["channel_variables"] = dict(self.variables)
        await self.send(self.event("MEDIA_START", **told))

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        decode = {"ulaw": ulaw_decode, "alaw": alaw_decode}.get(self.codec, bytes)
        if isinstance(message, bytes):
            self.play(decode(message))
            return
        command = message if isinstance(message, str) else message.get("command")
        if command == "FLUSH_MEDIA":
            self.drop()
        elif command == "MARK_MEDIA" and isinstance(message, dict):
            name = message["correlation_id"]
            self.mark(name, self.event("MEDIA_MARK_PROCESSED", correlation_id=name))
        elif command == "REPORT_QUEUE_DRAINED":
            self.mark("drain", self.event("QUEUE_DRAINED"))
        elif command == "HANGUP":
            self.hung_up = True

    def encode(self, pcm: bytes) -> bytes:
        return {"ulaw": ulaw_encode, "alaw": alaw_encode}.get(self.codec, bytes)(pcm)

    async def press(self, digit: str) -> None:
        await self.send(self.event("DTMF_END", digit=digit))


class FreeSwitch(Exchange):
    """``uuid_audio_stream UUID start URL mono 8k METADATA``, with a script that acts on ``clear`` and ``hangup``."""

    path = "/freeswitch/stream"

    async def begin(self) -> None:
        await self.send({"uuid": "5a7f0b2e-call", "caller": "+15550100", "called": "100"})

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        assert isinstance(message, dict)
        if message["type"] == "streamAudio":
            data = message["data"]
            assert (data["audioDataType"], data["sampleRate"]) == ("raw", self.rate)
            self.play(base64.b64decode(data["audioData"], validate=True))
        elif message["type"] == "clear":
            self.drop()
        elif message["type"] == "hangup":
            self.hung_up = True

    async def press(self, digit: str) -> None:
        await self.send({"type": "dtmf", "digit": digit})


class Jambonz(Exchange):
    """The ``listen`` verb with streaming audio both ways."""

    path = "/jambonz/stream"
    subprotocol = "audio.jambonz.org"
    tells_marks = True

    async def begin(self) -> None:
        call = {"callSid": "2c5f8d74-call", "from": "+15550100", "to": "+15550199", "direction": "inbound"}
        await self.send(call | {"sampleRate": self.rate, "mixType": "mono", "plan": "gold"})

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        if isinstance(message, bytes):
            self.play(message)
            return
        assert isinstance(message, dict)
        if message["type"] == "killAudio":
            self.drop()
        elif message["type"] == "mark":
            name = message["data"]["name"]
            self.mark(name, {"type": "mark", "data": {"name": name, "event": "playout"}})
        elif message["type"] == "disconnect":
            self.hung_up = True

    async def press(self, digit: str) -> None:
        await self.send({"event": "dtmf", "dtmf": digit, "duration": "1600"})


class Genesys(Exchange):
    """AudioHook's client side, strict about sequence numbers as Genesys is."""

    path = "/genesys/audiohook"
    session: ClassVar[str] = "30b0e395-84d3-4570-ac13-9a62d8f514c0"
    organization: ClassVar[str] = "d7934305-0972-4844-938e-9060eef73d05"
    conversation: ClassVar[str] = "090eaa2f-72fa-480a-83e0-8667ff89c0ec"
    channels: ClassVar[tuple[str, ...]] = ("external",)

    def __init__(self, socket: ClientConnection, rate: int) -> None:
        super().__init__(socket, rate)
        self.seq = self.serverseq = 0
        self.opened = asyncio.get_running_loop().create_future()

    def message(self, kind: str, **parameters: Any) -> str:
        self.seq += 1
        head = {"version": "2", "id": self.session, "type": kind, "seq": self.seq, "serverseq": self.serverseq}
        return json.dumps(head | {"position": "PT0S", "parameters": parameters})

    async def begin(self) -> None:
        media = [
            {"type": "audio", "format": "PCMU", "channels": list(self.channels), "rate": 8000},
            {"type": "audio", "format": "L16", "channels": ["external", "internal"], "rate": 8000},
        ]
        participant = {"id": str(uuid.uuid4()), "ani": "+15550100", "aniName": "Ann", "dnis": "+15550199"}
        await self.send(
            self.message(
                "open",
                organizationId=self.organization,
                conversationId=self.conversation,
                participant=participant,
                media=media,
                language="en-US",
                inputVariables={"plan": "gold"},
            )
        )

    def take(self, message: bytes | str | dict[str, Any]) -> None:
        if isinstance(message, bytes):
            self.play(ulaw_decode(message))
            return
        assert isinstance(message, dict)
        assert (message["version"], message["id"]) == ("2", self.session)
        assert message["seq"] == self.serverseq + 1, "a number was skipped or came twice"
        assert message["clientseq"] <= self.seq
        self.serverseq = message["seq"]
        if message["type"] == "opened" and not self.opened.done():
            self.opened.set_result(message["parameters"])
        elif message["type"] == "event":
            assert message["parameters"] == {"entities": [{"type": "barge_in", "data": {}}]}
            self.drop()
        elif message["type"] == "disconnect":
            self.hung_up = True
            self.say(self.message("close", reason="disconnect"))
        elif message["type"] == "closed":
            task = asyncio.get_running_loop().create_task(self.socket.close())
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    def encode(self, pcm: bytes) -> bytes:
        codes = ulaw_encode(pcm)
        if len(self.channels) == 1:
            return codes
        other = bytes([0xFF]) * len(codes)
        sides = [codes if channel == "external" else other for channel in self.channels]
        return bytes(code for pair in zip(*sides, strict=True) for code in pair)

    async def press(self, digit: str) -> None:
        await self.send(self.message("dtmf", digit=digit))

    async def speak(self, pcm: bytes) -> None:
        await asyncio.wait_for(asyncio.shield(self.opened), 5)
        await super().speak(pcm)

    async def hang_up(self) -> None:
        await self.send(self.message("close", reason="end"))


def _object(text: str) -> str | dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return text
    return body if isinstance(body, dict) else text
