"""The way in of streaming providers: whoever does not become a call holds nothing up."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from tests.support.lines import RecordingDesk
from tests.support.virtual_time import virtual_time
from voice_agent.channels.pbx.jambonz import JambonzSerializer
from voice_agent.channels.streaming.channel import HANDSHAKE_S, MediaSocketChannel
from voice_agent.channels.streaming.wire import CLOSE_S


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
