"""Browser calls end cleanly in every order, and nothing of them is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiortc import VideoStreamTrack

from tests.channels.contract import speak, tone
from tests.support.lines import Line, RecordingService, serving, until
from tests.support.webrtc_caller import WebRtcCaller
from voice_agent.config import Channels, WebRtcOptions


def service(**options: object) -> RecordingService:
    options = {"bind_addresses": ("127.0.0.1",)} | options
    return RecordingService(channels=Channels(webrtc=WebRtcOptions(**options)))  # type: ignore[arg-type]


@pytest.fixture
async def agent() -> RecordingService:
    return service()


@pytest.fixture
async def address(agent: RecordingService) -> AsyncIterator[str]:
    async with serving(agent) as address:
        yield address


async def reason(line: Line, within_s: float = 5.0) -> str:
    async with asyncio.timeout(within_s):
        return await asyncio.shield(line.ended)


async def vanish(caller: WebRtcCaller) -> None:
    """The network goes: nothing is sent any more, not even that the connection is closed."""
    for transceiver in caller.connection.getTransceivers():
        connection = transceiver.receiver.transport.transport._connection
        for protocol in connection._protocols:
            protocol.transport.sendto = lambda *packet: None
    await asyncio.sleep(0)


async def test_a_closed_tab_ends_the_call_at_once(agent: RecordingService, address: str) -> None:
    caller = await WebRtcCaller.dial(address)
    line = await agent.calls.next_line()
    await caller.close()
    assert await reason(line, 1.0) == "disconnected"


async def test_a_delete_hangs_up_and_is_then_told_that_there_is_no_such_call(
    agent: RecordingService, address: str
) -> None:
    caller = await WebRtcCaller.dial(address)
    line = await agent.calls.next_line()
    assert (await caller.request("DELETE", f"/call/{caller.call_id}")).status_code == 204
    assert await reason(line) == "hang_up"
    await until(lambda: caller.over)
    response = await caller.request("DELETE", f"/call/{caller.call_id}")
    assert (response.status_code, response.json()["code"]) == (404, "no_such_call")
    await caller.close()


async def test_the_agents_goodbye_is_heard_whole_and_then_the_line_closes(
    agent: RecordingService, address: str
) -> None:
    caller = await WebRtcCaller.dial(address)
    line = await agent.calls.next_line()
    speak(line, tone(0.5))
    assert await line.wire.drain(3)
    await line.wire.hang_up("completed")
    assert await reason(line) == "closed"
    await until(lambda: caller.of("hangup"))
    assert caller.of("hangup") == [{"type": "hangup", "reason": "completed"}]
    assert len(caller.audio) >= len(tone(0.49))
    await until(lambda: caller.connection.connectionState == "closed")
    await caller.close()


async def test_a_stopping_server_ends_calls_and_those_still_connecting() -> None:
    agent = service(connect_timeout_s=60)
    began = asyncio.get_running_loop().time()
    async with serving(agent) as address:
        caller = await WebRtcCaller.dial(address)
        await agent.calls.next_line()
        silent = WebRtcCaller()
        await offer_and_vanish(silent, address)
    assert asyncio.get_running_loop().time() - began < 15
    await until(lambda: caller.over)
    assert len(agent.calls.lines) == 1
    await caller.close()
    await silent.close()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def offer_and_vanish(caller: WebRtcCaller, address: str) -> None:
    """Post an offer and never answer a connectivity check."""

    async def nothing(*_: object) -> None:
        return

    caller.connection.setRemoteDescription = nothing  # type: ignore[method-assign]
    await caller.offer(address)


async def test_media_that_never_comes_through_ends_in_time_and_names_the_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = service(connect_timeout_s=0.5)
    async with serving(agent) as address:
        caller = WebRtcCaller()
        with caplog.at_level(logging.WARNING):
            await offer_and_vanish(caller, address)
            await until(lambda: any("ice_servers" in r.getMessage() for r in caplog.records))
        told = next(r.getMessage() for r in caplog.records if "ice_servers" in r.getMessage())
        assert "UDP" in told
        assert "STUN and TURN" in told
        assert agent.calls.lines == []
        await until(lambda: not [t for t in asyncio.all_tasks() if t.get_name() == "webrtc.call"])
        await caller.close()


async def test_extra_tracks_and_video_are_answered_as_inactive_and_cost_nothing(
    agent: RecordingService, address: str
) -> None:
    threads = threading.active_count()
    caller = WebRtcCaller()
    caller.connection.addTrack(VideoStreamTrack())
    caller.connection.addTransceiver("audio", direction="sendrecv")
    await caller.offer(address)
    line = await agent.calls.next_line()
    await caller.speak(tone(0.3))
    await until(lambda: len(line.inputs.heard) > 10_000)
    assert caller.answer.count("a=inactive") == 2
    assert not [t.name for t in threading.enumerate() if t.name.startswith("video-decoder")]
    assert threading.active_count() <= threads + 3  # the client's own decoder and encoder
    await caller.close()
    assert await reason(line) == "disconnected"


async def test_nothing_is_left_after_calls_that_ended_in_every_way(agent: RecordingService, address: str) -> None:
    wires: list[weakref.ref[object]] = []

    async def one(way: int) -> None:
        caller = await WebRtcCaller.dial(address)
        line = await agent.calls.next_line()
        wires.append(weakref.ref(line.wire))
        speak(line, tone(0.05))
        match way % 4:
            case 0:
                await caller.close()
            case 1:
                await caller.request("DELETE", f"/call/{caller.call_id}")
            case 2:
                await line.wire.hang_up("completed")
            case _:
                await caller.hang_up()
        await reason(line)
        await caller.close()

    await one(0)
    # What a call leaves is told by the service's own objects: the client shares this process.
    await until(lambda: not [t for t in asyncio.all_tasks() if t.get_name() == "webrtc.call"])
    tasks, threads, files = len(asyncio.all_tasks()), threading.active_count(), open_files()
    for way in range(8):
        await one(way)
    await until(lambda: len(asyncio.all_tasks()) <= tasks)
    await until(lambda: threading.active_count() <= threads)
    await until(lambda: open_files() <= files)
    agent.calls.lines.clear()
    gc.collect()
    assert [wire for wire in wires if wire() is not None] == []


async def test_a_peer_that_vanishes_is_noticed_when_ice_consent_is_lost(
    agent: RecordingService, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 0.1)
    monkeypatch.setattr("aioice.ice.CONSENT_FAILURES", 3)
    caller = await WebRtcCaller.dial(address)
    line = await agent.calls.next_line()
    await vanish(caller)
    assert await reason(line, 15) == "disconnected"
    with contextlib.suppress(Exception):
        await caller.close()
