"""The far end of an AudioSocket connection, as Asterisk is one."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

from voice_agent.audio.resample import resample
from voice_agent.channels import audiosocket_messages as messages


class AudioSocketCaller:
    """Keeps what arrives. Implements the far end of the channel contract."""

    reports_position = tells_marks = can_clear = False

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rate: int) -> None:
        self.reader, self.writer, self.rate = reader, writer, rate
        self.received: list[tuple[int, bytes]] = []
        self.arrivals: list[float] = []
        self.over = False
        self.clears, self.marks = 0, list[str]()
        self._reading = asyncio.create_task(self._read(), name="test.audiosocket")

    @classmethod
    async def dial(
        cls, port: int, identity: uuid.UUID | None = None, rate: int = 8000, *, silence: bool = True
    ) -> AudioSocketCaller:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        caller = cls(reader, writer, rate)
        caller.send(messages.IDENTITY, (identity or uuid.uuid4()).bytes)
        if silence:
            caller.send(caller.kind, bytes(rate // 50 * 2))
        return caller

    @property
    def kind(self) -> int:
        return next(kind for kind, hz in messages.AUDIO_HZ.items() if hz == self.rate)

    @property
    def audio(self) -> bytes:
        pcm = b"".join(payload for kind, payload in self.received if kind == self.kind)
        return resample(pcm, self.rate, 16000)

    def send(self, kind: int, payload: bytes = b"") -> None:
        self.writer.write(messages.frame(kind, payload))

    async def speak(self, pcm: bytes) -> None:
        wire, size = resample(pcm, 16000, self.rate), self.rate // 50 * 2
        for at in range(0, len(wire), size):
            self.send(self.kind, wire[at : at + size].ljust(size, b"\0"))
        await self.writer.drain()

    async def press(self, digit: str) -> None:
        self.send(messages.DTMF, digit.encode())

    async def report_played(self, ms: float) -> None:
        raise NotImplementedError

    async def hang_up(self) -> None:
        self.send(messages.HANG_UP)

    async def vanish(self) -> None:
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.transport.abort()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        with suppress(OSError, EOFError):
            while True:
                header = await self.reader.readexactly(3)
                payload = await self.reader.readexactly(messages.payload_bytes(header))
                self.received.append((header[0], payload))
                self.arrivals.append(asyncio.get_running_loop().time())
                if header[0] == messages.HANG_UP:
                    break
        self.over = True
