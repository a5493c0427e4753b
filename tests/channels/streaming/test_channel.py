"""The way in of streaming providers: whoever does not become a call holds nothing up."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from tests.support.lines import RecordingDesk
from tests.support.virtual_time import virtual_time
from voice_agent.channels.handshakes import MAX_HANDSHAKES
from voice_agent.channels.pbx.asterisk import AsteriskSerializer
from voice_agent.channels.pbx.jambonz import JambonzSerializer
from voice_agent.channels.streaming.channel import HANDSHAKE_S, MediaSocketChannel
from voice_agent.channels.streaming.connection import POLICY_VIOLATION, TRY_AGAIN_LATER
from voice_agent.channels.streaming.wire import CLOSE_S

STARTED = "MEDIA_START connection_id:e226 channel_id:pbx1-1.9 format:slin16 optimal_frame_size:640"


@virtual_time
async def test_a_far_end_that_takes_nothing_is_let_go_of_when_it_is_turned_away() -> None:
    sent: list[str] = []

    async def receive() -> MutableMapping[str, Any]:
        if not sent:
            return {"type": "websocket.connect"}
        return await asyncio.get_running_loop().create_future()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])
        if message["type"] != "websocket.accept":
            await asyncio.get_running_loop().create_future()

    desk = RecordingDesk()
    channel = MediaSocketChannel(desk, lambda scope: None, lambda scope: JambonzSerializer())
    async with asyncio.timeout(HANDSHAKE_S + CLOSE_S + 1):
        await channel({"type": "websocket", "query_string": b"", "headers": []}, receive, send)
    assert sent[0] == "websocket.accept"
    assert len(sent) == 2
    assert desk.lines == []


@virtual_time
async def test_connections_that_say_nothing_make_room_for_one_that_speaks_at_once() -> None:
    desk, closed = RecordingDesk(), list[int]()
    channel = MediaSocketChannel(desk, lambda scope: None, lambda scope: AsteriskSerializer())

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.close":
            closed.append(message["code"])

    async def connected(*says: str) -> None:
        said: list[dict[str, Any]] = [{"type": "websocket.connect"}]
        said += [{"type": "websocket.receive", "text": text} for text in says]

        async def receive() -> MutableMapping[str, Any]:
            return said.pop(0) if said else await asyncio.get_running_loop().create_future()

        await channel({"type": "websocket", "query_string": b"", "headers": []}, receive, send)

    silent = [asyncio.create_task(connected()) for _ in range(MAX_HANDSHAKES)]
    await asyncio.sleep(0.1)
    genuine = asyncio.create_task(connected(STARTED))
    await asyncio.sleep(0.1)
    assert len(desk.lines) == 1
    assert closed == [TRY_AGAIN_LATER]
    assert silent[0].done()
    await asyncio.sleep(HANDSHAKE_S)
    assert closed == [TRY_AGAIN_LATER] + [POLICY_VIOLATION] * (MAX_HANDSHAKES - 1)
    genuine.cancel()
    await asyncio.wait({genuine})
