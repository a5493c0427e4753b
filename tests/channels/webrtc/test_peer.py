from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from aioice import Connection
from aiortc import RTCIceTransport, RTCPeerConnection

from voice_agent.channels.webrtc.peer import Peer
from voice_agent.ice_addresses import IceOptions


async def test_a_connection_that_is_closed_between_two_transports_fails_in_nobodys_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    start, close = RTCIceTransport.start, Connection.close
    second_is_closing = asyncio.Event()
    closing: list[Connection] = []

    async def first_takes_its_time(transport: RTCIceTransport, parameters: Any) -> None:
        if not second_is_closing.is_set():
            await second_is_closing.wait()
            return
        await start(transport, parameters)

    async def second_closes_slowly(connection: Connection) -> None:
        closing.append(connection)
        if len(closing) == 2:
            second_is_closing.set()
            await asyncio.sleep(0.02)
        await close(connection)

    offer = await _offer_of_two_transports()
    monkeypatch.setattr(RTCIceTransport, "start", first_takes_its_time)
    monkeypatch.setattr(Connection, "close", second_closes_slowly)
    nothing: dict[str, Callable[[], None]] = dict.fromkeys(("on_open", "on_channel", "on_end"), lambda: None)
    peer = Peer(IceOptions(loopback=True), on_packet=lambda *_: None, on_message=lambda _: None, **nothing)
    await peer.answer(offer)
    await asyncio.sleep(0)
    await peer.close()
    assert len(closing) == 2
    del peer
    gc.collect()
    assert not faults


async def _offer_of_two_transports() -> str:
    caller = RTCPeerConnection()
    caller.addTransceiver("audio")
    caller.createDataChannel("voice-agent")
    await caller.setLocalDescription(await caller.createOffer())
    lines = [line for line in caller.localDescription.sdp.splitlines() if not line.startswith("a=group:BUNDLE")]
    await caller.close()
    return "\r\n".join(lines) + "\r\n"
