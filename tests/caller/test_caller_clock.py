"""The session's clock in virtual time, over a wire that is a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from tests.support.virtual_time import virtual_time
from voice_agent.caller import session
from voice_agent.caller.conversation import Ending, Patience
from voice_agent.caller.session import CallOutcome, Session
from voice_agent.caller.wire import AgentAudio, WireItem

TONE = AgentAudio(b"\x01\x02" * 320)


class ScriptedWire:
    """Plays ``(seconds, item)`` to the caller, takes its frames, stalls on the frames numbered in ``stalls``."""

    signals_clear = True

    def __init__(self, items: Sequence[tuple[float, WireItem]], stalls: dict[int, float] | None = None) -> None:
        self.items, self.stalls = items, stalls or {}
        self.sent: list[float] = []
        self.hung_up = asyncio.Event()
        self.closed_because = "closed"
        self.takes_audio = True

    async def connect(self) -> None:
        self.began = asyncio.get_running_loop().time()

    async def receive(self) -> AsyncIterator[WireItem]:
        loop = asyncio.get_running_loop()
        for at, item in self.items:
            delay = self.began + at - loop.time()
            try:
                async with asyncio.timeout(max(delay, 0)):
                    await self.hung_up.wait()
                return
            except TimeoutError:
                yield item
        await self.hung_up.wait()

    async def send_audio(self, frame: bytes) -> bool:
        self.sent.append(asyncio.get_running_loop().time() - self.began)
        await asyncio.sleep(self.stalls.get(len(self.sent), 0))
        return self.takes_audio

    async def hang_up(self) -> None:
        self.hung_up.set()


def greeting(start: float, seconds: float) -> list[tuple[float, WireItem]]:
    return [(start + i * 0.02, TONE) for i in range(round(seconds / 0.02))]


async def call(wire: ScriptedWire, **patience: float) -> CallOutcome:
    return await Session(wire, [], 16000, patience=Patience(**patience)).run()


@virtual_time
async def test_each_frame_leaves_on_its_deadline():
    wire = ScriptedWire(greeting(0.1, 10.0))
    await call(wire)
    assert len(wire.sent) > 500
    assert all(at == pytest.approx(index * 0.02) for index, at in enumerate(wire.sent))


@virtual_time
async def test_after_a_stall_the_missing_frames_are_made_up_for_and_the_clock_has_not_moved():
    wire = ScriptedWire(greeting(0.1, 3.0), stalls={50: 0.5})
    await call(wire)
    late = [index for index, at in enumerate(wire.sent) if at > index * 0.02 + 0.001]
    assert late == list(range(50, 74))
    assert wire.sent[80] == pytest.approx(1.6)


@virtual_time
async def test_a_wire_that_takes_no_more_audio_ends_the_call():
    wire = ScriptedWire(greeting(0.1, 1.0))
    wire.takes_audio = False
    outcome = await call(wire)
    assert outcome.conversation.ending is Ending.AGENT_LEFT
    assert outcome.left_because == "it takes no more audio"


@virtual_time
async def test_no_call_is_longer_than_the_longest():
    wire = ScriptedWire(greeting(0.1, 70.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "MAX_CALL_S", 60.0)
        outcome = await call(wire, longest_reply_s=1e6)
    assert outcome.conversation.ending is Ending.TOO_LONG
    assert outcome.seconds == pytest.approx(60.0)
