"""The microphone and speaker of a real sound system carry a call as any wire does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import pytest

from tests.channels.contract import level, sounding, speak, tone
from tests.support.lines import Line, RecordedInputs, until
from tests.support.pulse import SoundSystem, sound_system
from voice_agent.call.wire import MarkMessage, TranscriptMessage, WireMessage
from voice_agent.channels.desk import CallRequest
from voice_agent.channels.microphone import devices
from voice_agent.channels.microphone.wire import MicrophoneWire
from voice_agent.diagnostics import RemediableError


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoundSystem]:
    with sound_system(tmp_path_factory.mktemp("pulse")) as system:
        before = {name: os.environ.get(name) for name in system.environment}
        os.environ.update(system.environment)
        yield system
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.fixture(scope="module")
def sounddevice(sound: SoundSystem) -> Iterator[ModuleType]:
    module = devices.load()
    module._terminate()
    module._initialize()
    yield module
    module._terminate()
    module._initialize()


@asynccontextmanager
async def talking(sounddevice: ModuleType) -> AsyncIterator[tuple[Line, MicrophoneWire, list[WireMessage]]]:
    told: list[WireMessage] = []
    ear = devices.choose(sounddevice, None, is_input=True)
    mouth = devices.choose(sounddevice, None, is_input=False)
    wire = MicrophoneWire(sounddevice, ear, mouth, told.append)
    line = Line(CallRequest("c", "microphone"), wire, RecordedInputs())
    running = asyncio.create_task(wire.run(line.inputs))
    running.add_done_callback(lambda run: line.ended.set_result(run.result()))
    try:
        await until(lambda: line.inputs.heard, within_s=10)
        yield line, wire, told
    finally:
        wire.leave()
        async with asyncio.timeout(10):
            await line.ended


async def test_what_is_said_into_the_microphone_arrives_whole(sound: SoundSystem, sounddevice: ModuleType) -> None:
    async with talking(sounddevice) as (line, _, _):
        said = tone(0.6)
        await sound.play(said)
        heard = line.inputs
        await until(lambda: len(sounding(bytes(heard.heard))) >= len(said) * 0.95)
        assert level(sounding(bytes(heard.heard))) == pytest.approx(level(said), rel=0.15)


async def test_what_the_agent_says_comes_out_of_the_speaker_and_marks_when_it_is_heard(
    sound: SoundSystem, sounddevice: ModuleType
) -> None:
    async with talking(sounddevice) as (line, wire, _):
        with sound.listen() as heard:
            speak(line, tone(0.3))
            wire.send(MarkMessage("middle"))
            speak(line, tone(0.3))
            wire.send(MarkMessage("end"))
            assert await wire.drain(3) is True
            assert line.inputs.marks == ["middle", "end"]
            await until(lambda: len(sounding(heard.pcm)) >= len(tone(0.57)))
            assert level(sounding(heard.pcm)) == pytest.approx(level(tone(0.6)), rel=0.15)


async def test_an_interruption_is_silence_at_once(sound: SoundSystem, sounddevice: ModuleType) -> None:
    async with talking(sounddevice) as (line, wire, _):
        with sound.listen() as heard:
            speak(line, tone(1.5))
            wire.send(MarkMessage("never"))
            await until(lambda: sounding(heard.pcm))
            wire.clear()
            before = len(sounding(heard.pcm))
            await asyncio.sleep(0.7)
            # What the sound system holds is heard still: `LATENCY_S`, and what the recording adds.
            assert len(sounding(heard.pcm)) - before <= len(tone(0.25))
            assert line.inputs.marks == []


async def test_draining_gives_up_at_its_limit_and_nothing_is_played_after_the_end(sounddevice: ModuleType) -> None:
    async with talking(sounddevice) as (line, wire, told):
        speak(line, tone(1.5))
        assert await wire.drain(0.05) is False
        wire.send(TranscriptMessage("agent", "Hello.", final=True))
        assert told == [TranscriptMessage("agent", "Hello.", final=True)]
        await wire.hang_up("completed")
        assert await wire.drain(1) is False
    assert line.ended.result() == "closed"


async def test_leaving_is_the_callers_hang_up_and_leaves_no_task(sounddevice: ModuleType) -> None:
    before = asyncio.all_tasks()
    async with talking(sounddevice) as (line, _, _):
        pass
    assert line.ended.result() == "hang_up"
    assert asyncio.all_tasks() <= before


def test_a_device_is_chosen_by_number_or_by_a_part_of_its_name(sounddevice: ModuleType) -> None:
    found = devices.devices(sounddevice)
    assert found
    pulse = devices.choose(sounddevice, "pulse", is_input=True)
    assert devices.choose(sounddevice, str(pulse.index), is_input=True) == pulse
    with pytest.raises(RemediableError, match="No microphone is called 'none such'"):
        devices.choose(sounddevice, "none such", is_input=True)


async def test_a_sound_system_that_goes_ends_the_call(tmp_path: Path, sounddevice: ModuleType) -> None:
    """In a server of its own, since nothing comes back of it."""
    with sound_system(tmp_path) as system:
        kept = {name: os.environ[name] for name in system.environment}
        os.environ.update(system.environment)
        try:
            sounddevice._terminate()
            sounddevice._initialize()
            async with talking(sounddevice) as (line, _, _):
                await until(lambda: line.inputs.heard)
                system.server.terminate()
                await until(line.ended.done)
                assert line.ended.result() == "disconnected"
        finally:
            os.environ.update(kept)
            sounddevice._terminate()
            sounddevice._initialize()
