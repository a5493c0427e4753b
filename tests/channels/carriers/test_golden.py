"""The carriers' messages as their documentation shows them, read one by one and replayed through the real server."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from tests.channels.carriers.golden_messages import golden
from tests.support.carrier_calls import CarrierCall
from tests.support.carrier_kinds import CARRIERS, SERIALIZERS
from tests.support.lines import RecordingService
from voice_agent.call.wire import MarkMessage
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key
from voice_agent.channels.streaming.serializer import MarkReached, Media, Started


def tone(rate: int) -> bytes:
    return (np.sin(np.arange(rate // 50) * 2 * np.pi * 300 / rate) * 8000).astype("<i2").tobytes()


def values(carried: type[CarrierCall], call: str = "", token: str = "t") -> dict[str, str]:
    def written(pcm: bytes) -> str:
        return base64.b64encode(carried.encode_audio(pcm)).decode()

    return {
        "CALL": call or carried.new_call(),
        "TOKEN": token,
        "TONE_HEX": tone(carried.RATE).hex(),
        "SILENCE_HEX": bytes(carried.RATE // 25).hex(),
        "TONE": written(tone(carried.RATE)),
        "SILENCE": written(bytes(carried.RATE // 25)),
    }


def told(item: Any, rate: int) -> str:
    match item:
        case Started(call):
            return f"started {call}"
        case Media(pcm):
            return f"audio {len(pcm) * 500 // rate}"
        case Key(digit):
            return f"key {digit}"
        case MarkReached(name):
            return f"mark {name}"
        case CallerHangUp():
            return "hang_up"
    raise AssertionError(item)


@pytest.mark.parametrize("carried", CARRIERS)
def test_each_message_of_the_documentation_is_read_and_written_as_it_stands_there(carried: type[CarrierCall]) -> None:
    serializer = SERIALIZERS[carried.channel]()
    for line in golden(carried.channel, **values(carried)):
        if line.do:
            written = {
                "audio": lambda: [serializer.audio(bytes(carried.RATE // 25))],
                "mark": lambda: [serializer.message(MarkMessage("my label"))],
                "clear": serializer.clear,
            }[line.do]()
            [one] = written
            assert (one.hex() if isinstance(one, bytes) else json.loads(one)) == line.sends
            continue
        message = line.send if isinstance(line.send, bytes) else json.dumps(line.send)
        try:
            gave = " ".join(told(item, serializer.rate) for item in serializer.read(message))
        except BadMessage as fault:
            gave = f"refused {fault.code}"
        assert gave == line.gives, line


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("carried", CARRIERS)
async def test_a_call_as_the_documentation_shows_it_goes_through_the_real_server_in_real_time(
    carried: type[CarrierCall], served: tuple[str, RecordingService]
) -> None:
    address, service = served
    call, token = await carried.announce(address)
    socket = await carried.open_socket(address, token)
    lines = [line for line in golden(carried.channel, **values(carried, call, token)) if not line.do]
    began, loop = asyncio.get_running_loop().time(), asyncio.get_running_loop()
    for line in lines:
        await asyncio.sleep(max(0.0, began + line.at_ms / 1000 - loop.time()))
        for _ in range(line.repeat):
            with suppress(ConnectionClosed):  # what comes after the end may come too late
                await socket.send(line.send if isinstance(line.send, bytes) else json.dumps(line.send))
    near = await service.calls.next_line()
    wanted = [line.gives for line in lines if not line.gives.startswith("refused")]
    if "hang_up" not in wanted:
        await socket.close()
    async with asyncio.timeout(5):
        assert await near.ended == ("hang_up" if "hang_up" in wanted else "disconnected")
    heard_ms = sum(20 * line.gives.count("audio 20") * line.repeat for line in lines)
    assert len(near.inputs.heard) / 32 == pytest.approx(heard_ms, abs=30)  # the resampler keeps some back
    assert [f"key {key}" for key in near.inputs.keys] == [g for g in wanted if g.startswith("key")]
    assert [f"mark {mark}" for mark in near.inputs.marks] == [g for g in wanted if g.startswith("mark")]
    await socket.close()
    assert len(service.calls.lines) == 1
