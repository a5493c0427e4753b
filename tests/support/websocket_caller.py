"""A plain WebSocket client in the terms of the channel contract."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from voice_agent.audio.resample import resample


class WebSocketCaller:
    """Collects what the agent sends. ``messages`` are the JSON messages, ``received`` all in order."""

    reports_position = tells_marks = can_clear = True

    def __init__(self, socket: ClientConnection, rate: int = 16000) -> None:
        self.socket, self.rate = socket, rate
        self.received: list[bytes | dict[str, Any]] = []
        self.closed_with: int | None = None
        self._reader = asyncio.get_running_loop().create_task(self._read(), name="test.caller")

    @classmethod
    async def dial(cls, address: str, query: str = "", rate: int = 16000, **options: Any) -> WebSocketCaller:
        return cls(await connect(f"ws://{address}/ws{query}", compression=None, **options), rate)

    async def _read(self) -> None:
        try:
            async for message in self.socket:
                self.received.append(message if isinstance(message, bytes) else json.loads(message))
        except ConnectionClosed:
            pass
        self.closed_with = self.socket.close_code

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [m for m in self.received if isinstance(m, dict)]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [m for m in self.messages if m["type"] == kind]

    @property
    def audio(self) -> bytes:
        kept = b""
        for message in self.received:
            if isinstance(message, bytes):
                kept += message
            elif message["type"] == "clear":
                kept = b""
        return kept if self.rate == 16000 else resample(kept, self.rate, 16000)

    @property
    def clears(self) -> int:
        return len(self.of("clear"))

    @property
    def marks(self) -> list[str]:
        return [m["name"] for m in self.of("mark")]

    @property
    def over(self) -> bool:
        return self.closed_with is not None

    async def speak(self, pcm: bytes) -> None:
        pcm = pcm if self.rate == 16000 else resample(pcm, 16000, self.rate)
        for at in range(0, len(pcm), 641):  # neither a frame nor a whole number of samples
            await self.socket.send(pcm[at : at + 641])

    async def say(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def press(self, digit: str) -> None:
        await self.say(type="dtmf", digit=digit)

    async def report_played(self, ms: float) -> None:
        await self.say(type="played", ms=ms)

    async def hang_up(self) -> None:
        await self.say(type="hangup")

    async def vanish(self) -> None:
        self.socket.transport.abort()
        await self._reader

    async def close(self) -> None:
        await self.socket.close()
        await self._reader
