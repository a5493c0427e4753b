"""The wire's own decisions, in virtual time, on a peer that only notes what it is given."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.channels.contract import tone
from tests.support.lines import RecordedInputs
from tests.support.virtual_time import virtual_time
from voice_agent.audio.frames import FRAME_BYTES
from voice_agent.channels.webrtc.opus import PacketCache, SpeechEncoder
from voice_agent.channels.webrtc.wire import FAR_BUFFER_S, KEEP_ALIVE_S, TAIL_FRAMES, WebRtcWire
from voice_agent.ice_addresses import IceOptions

FRAME_S = 0.02
VOICE = tone(2.0)
FRAMES = [VOICE[at : at + FRAME_BYTES] for at in range(0, len(VOICE), FRAME_BYTES)]


@dataclass
class Sent:
    """Packets as they left: the time, the time they are to be played at, whether they begin a piece of speech."""

    packets: list[tuple[float, float, bool]] = field(default_factory=list)

    def send(self, payload: bytes, at_s: float, *, first: bool) -> None:
        assert payload
        self.packets.append((asyncio.get_running_loop().time(), at_s, first))


def made() -> tuple[WebRtcWire, Sent]:
    wire, sent = WebRtcWire(IceOptions(), PacketCache(), "me"), Sent()
    wire.peer.line.send = sent.send  # type: ignore[method-assign]
    return wire, sent


@virtual_time
async def test_speech_on_a_loop_that_is_never_on_time_keeps_its_own_time() -> None:
    wire, sent = made()
    wire._has_opened()
    loop, dice = asyncio.get_running_loop(), random.Random(3)
    await asyncio.sleep(1)
    start, silences = loop.time(), len(sent.packets)
    for n in range(1000):
        await asyncio.sleep(max(0.0, start + n * FRAME_S + dice.uniform(0, 0.055) - loop.time()))
        wire.send_audio(FRAMES[n % len(FRAMES)])
    spoken = sent.packets[silences:]
    assert len(spoken) == 1000
    assert [first for _, _, first in spoken] == [True] + [False] * 999
    steps = np.diff([at_s for _, at_s, _ in spoken])
    assert steps == pytest.approx(np.full(999, FRAME_S))
    await wire.close()


@virtual_time
async def test_a_stall_is_skipped_and_not_replayed() -> None:
    wire, sent = made()
    wire.send_audio(FRAMES[0])
    await asyncio.sleep(0.5)
    wire.send_audio(FRAMES[1])
    times = [(at_s, first) for _, at_s, first in sent.packets if at_s in (0.0, 0.5)]
    assert times == [(0.0, True), (0.5, True)]
    await wire.close()


@virtual_time
async def test_silence_follows_speech_and_then_only_keeps_the_line_alive() -> None:
    wire, sent = made()
    wire.send_audio(FRAMES[0])
    await asyncio.sleep(2.5)
    gaps = np.diff([at for at, _, _ in sent.packets])
    assert gaps[1:TAIL_FRAMES] == pytest.approx(np.full(TAIL_FRAMES - 1, FRAME_S))
    assert gaps[TAIL_FRAMES:] == pytest.approx(np.full(len(gaps) - TAIL_FRAMES, KEEP_ALIVE_S))
    assert all(at_s <= at for at, at_s, _ in sent.packets)
    await wire.close()


@virtual_time
async def test_a_drain_counts_the_far_ends_buffer() -> None:
    wire, _ = made()
    for frame in FRAMES[:10]:
        wire.send_audio(frame)
    assert await wire.drain(3)
    assert asyncio.get_running_loop().time() == pytest.approx(0.2 + FAR_BUFFER_S, abs=0.001)
    await wire.close()


def packets(count: int) -> list[bytes]:
    encoder = SpeechEncoder(PacketCache())
    return [encoder.encode(frame) for frame in FRAMES[:count]]


@virtual_time
async def test_lost_packets_become_silence_so_that_the_callers_clock_goes_on() -> None:
    wire, _ = made()
    heard = RecordedInputs()
    running = asyncio.create_task(wire.run(heard))
    await asyncio.sleep(0)
    for n, payload in enumerate(packets(80)):
        if n % 8 != 5:
            wire._has_packet(n, n * 960, payload)
        await asyncio.sleep(FRAME_S)
    # The last two wait for one that never comes, and the resampler holds a little back.
    assert len(heard.heard) / FRAME_BYTES == pytest.approx(77, abs=1)
    wire.end_by_caller()
    assert await running == "hang_up"
    await wire.close()


@virtual_time
async def test_swapped_packets_are_heard_in_order() -> None:
    orders = {"as sent": list(range(60)), "swapped": [n + (1, -1)[n % 2] for n in range(60)]}
    heard = {}
    for name, order in orders.items():
        wire, _ = made()
        inputs = heard[name] = RecordedInputs()
        running = asyncio.create_task(wire.run(inputs))
        await asyncio.sleep(0)
        payloads = packets(60)
        wire._has_packet(65500, 0, payloads[0])
        for n in order:
            if n:
                wire._has_packet((65500 + n) % 65536, n * 960, payloads[n])
        wire.end_by_caller()
        await running
        await wire.close()
    assert bytes(heard["swapped"].heard) == bytes(heard["as sent"].heard)


@virtual_time
async def test_a_flood_of_packets_costs_no_decoder() -> None:
    wire, _ = made()
    running = asyncio.create_task(wire.run(RecordedInputs()))
    await asyncio.sleep(0)
    decoded, decode = [], wire._reception._decoder.decode
    wire._reception._decoder.decode = lambda payload: decoded.append(1) or decode(payload)  # type: ignore[method-assign]
    payload = packets(1)[0]
    for n in range(2000):
        wire._has_packet(n, n * 960, payload)
    assert len(decoded) <= 150
    wire.end_by_caller()
    await running
    await wire.close()


@virtual_time
async def test_what_is_no_opus_is_no_audio() -> None:
    wire, _ = made()
    heard = RecordedInputs()
    running = asyncio.create_task(wire.run(heard))
    await asyncio.sleep(0)
    for n in range(20):
        wire._has_packet(n, n * 960, bytes([255, n]) * 40)
    wire.end_by_caller()
    await running
    await wire.close()
