"""What a client's connection may cost the others, before any of our channels is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from tests.support.lines import RecordingService, serving, until
from voice_agent import connections


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /ws HTTP/1.1\r\nHost: localhost\r\nX-"])
async def test_a_request_that_does_not_come_does_not_hold_its_place(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.05)
    async with serving(RecordingService()) as address, opened(address) as (reader, writer):
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_second_request_on_a_kept_connection_must_come_whole_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.05)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with serving(RecordingService()) as address, opened(address) as (reader, writer):
        writer.write(request)
        assert b"alive" in await reader.readuntil(b"}")
        writer.write(request[:20])
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_call_outlasts_the_limit_on_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.05)
    service = RecordingService()
    async with serving(service) as address, connect(f"ws://{address}/ws") as socket:
        line = await service.calls.next_line()
        await asyncio.sleep(0.2)
        await socket.send(bytes(640))
        await until(lambda: len(line.inputs.heard) >= 640)


@pytest.mark.parametrize(
    ("first", "flood"),
    [
        (b"", Frame(Opcode.PING, b"")),
        (b"", Frame(Opcode.PONG, b"")),
        (Frame(Opcode.BINARY, b"", fin=False).serialize(mask=True), Frame(Opcode.CONT, b"", fin=False)),
    ],
    ids=["pings", "pongs", "continuations"],
)
async def test_a_flood_of_frames_that_are_no_messages_ends_the_connection(first: bytes, flood: Frame) -> None:
    service = RecordingService()
    async with serving(service) as address:
        socket = await connect(f"ws://{address}/ws")
        await service.calls.next_line()
        socket.transport.write(first + flood.serialize(mask=True) * 1000)
        with pytest.raises(ConnectionClosed) as caught:
            while True:
                await asyncio.wait_for(socket.recv(), 10)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1008


async def test_an_occasional_ping_is_answered() -> None:
    async with serving(RecordingService()) as address, connect(f"ws://{address}/ws") as socket:
        for _ in range(50):
            await asyncio.wait_for(await socket.ping(), 10)
