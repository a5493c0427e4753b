"""Over bad networks calls died, agents could not be interrupted, and after a stall old speech came in a burst.

Right: the call lives, an interruption works, and after a stall speech goes on at the live edge.

All calls go on at once, each with a service and a network of its own: nearly all of their time is waiting.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wire import voice_frame
from tests.support.audiosocket_caller import AudioSocketCaller
from tests.support.bad_network import BadNetwork, bad_network
from tests.support.lines import serving, until
from tests.support.small_service import small_service
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.audio.frames import FRAME_BYTES, SILENCE
from voice_agent.service.service import Service

LONG = "One two three four five six seven eight nine ten. " * 12
Caller = AudioSocketCaller | WebSocketCaller
WIRES = ["audiosocket", "websocket"]


@asynccontextmanager
async def calling(
    root: Path, wire: str, *, loss: float, jitter_s: float
) -> AsyncIterator[tuple[Service, Caller, BadNetwork]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = f"channels:\n  audiosocket: {{enabled: true, port: {port}}}\n"
    service = small_service(root, model=[LONG, "Yes?"], hears=["tell me all", "stop now please"], settings=settings)
    async with serving(service, channels=service.channels) as address:
        await until(lambda: not service.missing)
        target = port if wire == "audiosocket" else int(address.rpartition(":")[2])
        async with bad_network(target, loss=loss, jitter_s=jitter_s) as network:
            if wire == "audiosocket":
                caller: Caller = await AudioSocketCaller.dial(network.port, rate=16000)
            else:
                caller = await WebSocketCaller.dial(f"127.0.0.1:{network.port}", proxy=None)
            yield service, caller, network
            await caller.close()


class Talker:
    """Sends a frame every 20 ms."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._voice = caller, 0

    def speak(self, seconds: float) -> None:
        self._voice = round(seconds * 50)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while True:
            frame, self._voice = (voice_frame(1), self._voice - 1) if self._voice > 0 else (SILENCE, 0)
            if isinstance(self._caller, AudioSocketCaller):
                self._caller.send(self._caller.kind, frame)
            else:
                await self._caller.socket.send(frame)
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * 0.02 - loop.time()))


def agent_audio(caller: Caller) -> int:
    """Bytes of agent audio that have arrived, cleared or not."""
    if isinstance(caller, AudioSocketCaller):
        return sum(len(payload) for kind, payload in caller.received if kind == caller.kind)
    return sum(len(message) for message in caller.received if isinstance(message, bytes))


async def settled(caller: Caller, quiet_s: float = 0.9) -> int:
    """Wait until no more agent audio comes; return how much came."""
    count, loop = -1, asyncio.get_running_loop()
    since = loop.time()
    while loop.time() - since < quiet_s:
        if agent_audio(caller) != count:
            count, since = agent_audio(caller), loop.time()
        await asyncio.sleep(0.05)
    return count


@dataclass
class Interrupted:
    """``after_s``: agent audio that came once the caller had asked; ``stalls``: of the network."""

    after_s: float
    alive: bool
    stalls: int


async def interrupted(root: Path, wire: str) -> Interrupted:
    async with calling(root, wire, loss=0.1, jitter_s=0.1) as (_, caller, network):
        talker = Talker(caller)
        talking = asyncio.create_task(talker.run())
        await until(lambda: agent_audio(caller), within_s=15)
        greeting = await settled(caller)
        talker.speak(0.8)
        await until(lambda: agent_audio(caller) > greeting + 50 * FRAME_BYTES, within_s=20)
        talker.speak(0.8)
        await asyncio.sleep(0.8)
        in_the_end = await settled(caller)
        alive = not caller.over and not talking.done()
        talking.cancel()
        return Interrupted((in_the_end - greeting) / 32000, alive, network.stalls)


@dataclass
class Stalled:
    """``burst_s``: agent audio beyond real time that came once a stall of six seconds was over."""

    burst_s: float
    alive: bool


async def stalled(root: Path) -> Stalled:
    async with calling(root, "audiosocket", loss=0.0, jitter_s=0.0) as (_, caller, network):
        talker = Talker(caller)
        talking = asyncio.create_task(talker.run())
        await until(lambda: agent_audio(caller), within_s=15)
        greeting = await settled(caller)
        talker.speak(0.8)
        await until(lambda: agent_audio(caller) > greeting + 25 * FRAME_BYTES, within_s=20)
        loop = asyncio.get_running_loop()
        network.open.clear()
        await asyncio.sleep(6.0)
        before, opened = agent_audio(caller), loop.time()
        network.open.set()
        await asyncio.sleep(1.0)
        burst_s = (agent_audio(caller) - before) / 32000 - (loop.time() - opened)
        alive = not caller.over
        talking.cancel()
        return Stalled(burst_s, alive)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    async def all_calls() -> list[Any]:
        roots = [tmp_path_factory.mktemp(name) for name in (*WIRES, "stall")]
        works = [*(interrupted(root, wire) for root, wire in zip(roots, WIRES, strict=False)), stalled(roots[-1])]
        return await asyncio.gather(*works, return_exceptions=True)

    return dict(zip((*WIRES, "stall"), asyncio.run(all_calls()), strict=True))


@pytest.mark.parametrize("wire", WIRES)
def test_the_call_lives_and_can_be_interrupted(calls: Mapping[str, Any], wire: str) -> None:
    call = calls[wire]
    assert isinstance(call, Interrupted), call
    # "Yes?" follows; the long reply would have gone on for half a minute.
    assert call.after_s < 6
    assert call.alive
    assert call.stalls


def test_after_a_stall_speech_goes_on_at_the_live_edge_where_it_cannot_be_taken_back(calls: Mapping[str, Any]) -> None:
    call = calls["stall"]
    assert isinstance(call, Stalled), call
    # What the network and the buffers on the way held: not the six seconds of the stall.
    assert call.burst_s < 3.0
    assert call.alive
