"""An engine that ignored the interruption went on sending, and the caller heard speech of the cancelled reply
(here the voice's part: a closed generator is the end of its pieces).

Right: when the generator closes, the piece being made is dropped, later ones are never asked for, and closing
returns within its deadline even if the engine does not obey.
"""

from __future__ import annotations

import asyncio

from tests.fakes.synthesizer import FakeSynthesizer
from tests.fakes.voice import fake_speech
from tests.support.virtual_time import virtual_time
from voice_agent.config import CacheOptions
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.protocols import Priority, Speech
from voice_agent.speech.voice import STOP_TIMEOUT_S, CachedVoice

REPLY = "This is the first. Here is the second. And here the third. That was all."


class IgnoresCancel(FakeSynthesizer):
    """Takes two seconds for a piece, however often it is cancelled."""

    async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
        self.asked.append((text, priority))
        until = asyncio.get_running_loop().time() + 2
        while (left := until - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        return fake_speech(text)


@virtual_time
async def test_nothing_is_handed_out_or_asked_for_after_the_close() -> None:
    engine = IgnoresCancel()
    voice = CachedVoice(engine, ResponseCache(CacheOptions(disk_mb=0)))
    stream = voice.speak(REPLY, first=True)
    await anext(stream)
    await asyncio.sleep(0.1)
    began = asyncio.get_running_loop().time()
    await stream.aclose()
    assert asyncio.get_running_loop().time() - began <= STOP_TIMEOUT_S
    await asyncio.sleep(60)
    assert len(engine.asked) == 2
    assert [speech async for speech in stream] == []


@virtual_time
async def test_a_generator_closed_before_its_first_piece_leaves_nothing_behind() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    voice = CachedVoice(engine, ResponseCache(CacheOptions(disk_mb=0)))

    async def listen() -> None:
        async for _ in voice.speak(REPLY, first=True):
            raise AssertionError("no piece was due yet")

    async with asyncio.TaskGroup() as group:
        listener = group.create_task(listen())
        await asyncio.sleep(0.1)
        listener.cancel()
    await asyncio.sleep(1)
    assert engine.running == 0
    assert len(engine.asked) == 1
