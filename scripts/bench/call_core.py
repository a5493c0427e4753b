#!/usr/bin/env python3
"""What one frame costs the call itself: microseconds of CPU per 20 ms frame, without socket, detector and engines.

    scripts/bench/call_core.py [--calls 50] [--seconds 20]

Runs whole calls on the real clock's code in virtual time, with a detector that decides at once, in three states:
listening (the caller is silent), hearing (the caller speaks) and speaking (the agent does). Prints the cost of a
frame in each, CPU seconds per call-minute, and the memory of one call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fakes.conversation import ScriptedConversation, Speaker
from tests.fakes.voice import FakeVoice
from tests.support.virtual_time import VirtualLoop
from voice_agent.audio.frames import SILENCE
from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.wire import CallInputs, WireMessage, WireTraits
from voice_agent.config import TurnTaking
from voice_agent.speech.protocols import Priority, Transcript, Urgency, Voicing

FRAME_S = 0.02
QUIET, VOICED = Voicing(False, -70.0), Voicing(True, -20.0)


class Detector:
    """Knows the answer beforehand: what is measured is the call."""

    voiced = False

    def push(self, frame: bytes) -> Voicing:
        return VOICED if self.voiced else QUIET

    def reset(self) -> None:
        pass


class Recognizer:
    async def transcribe(self, pcm: object, *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT) -> Transcript:
        await asyncio.sleep(0.2)
        return Transcript("Hello there.", 1.0)


class Wire:
    """Takes frames and counts them; is fed by the benchmark."""

    traits = WireTraits("bench")

    def __init__(self) -> None:
        self.call: CallInputs | None = None
        self.sent = 0
        self._over = asyncio.Event()

    async def run(self, call: CallInputs) -> str:
        self.call = call
        await self._over.wait()
        return "hang_up"

    def send_audio(self, frame: bytes) -> None:
        self.sent += 1

    def clear(self) -> None:
        pass

    def send(self, message: WireMessage) -> None:
        pass

    async def drain(self, timeout_s: float) -> bool:
        return True

    async def hang_up(self, reason: str) -> None:
        self._over.set()


async def silent(speaker: Speaker) -> None:
    await asyncio.sleep(0)


def talkative(characters: int) -> Callable[[Speaker], object]:
    async def turn(speaker: Speaker) -> None:
        for _ in range(characters // 60):
            speaker.say("This is a sentence of exactly sixty characters, I believe. ")

    return turn


async def measure(calls: int, seconds: float, state: str) -> tuple[float, int]:
    """Return CPU seconds per frame and the frames sent, over the frames of all calls."""
    detectors = [Detector() for _ in range(calls)]
    wires = [Wire() for _ in range(calls)]
    options = TurnTaking(silence_timeout_s=0, max_utterance_s=600, greeting_guard_s=0)
    characters = int((seconds + 10) / 0.06) if state == "speaking" else 0
    loop = asyncio.get_running_loop()
    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        for index, (detector, wire) in enumerate(zip(detectors, wires, strict=True)):
            script = talkative(characters) if state == "speaking" else silent
            call = Call(
                call_id=str(index),
                conversation=ScriptedConversation(script),  # type: ignore[arg-type]
                wire=wire,
                voice=FakeVoice(),
                recognizer=Recognizer(),
                detector=detector,
                options=options,
                clock=clock,
            )
            group.create_task(call.run())
        await asyncio.sleep(1)
        for detector in detectors:
            detector.voiced = state == "hearing"
        frames = int(seconds / FRAME_S)
        inputs = [wire.call for wire in wires if wire.call is not None]
        sent = sum(wire.sent for wire in wires)
        begin, cpu = loop.time(), time.process_time()
        for tick in range(frames):
            for call_inputs in inputs:
                call_inputs.hear(SILENCE)
            await asyncio.sleep(begin + (tick + 1) * FRAME_S - loop.time())
        used = time.process_time() - cpu
        sent = sum(wire.sent for wire in wires) - sent
        for wire in wires:
            await wire.hang_up("over")
    return used / (frames * calls), sent


async def memory(calls: int) -> float:
    """Return the kilobytes that one listening call holds."""
    tracemalloc.start()
    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        wires = [Wire() for _ in range(calls)]
        before = tracemalloc.get_traced_memory()[0]
        for index, wire in enumerate(wires):
            call = Call(
                call_id=str(index),
                conversation=ScriptedConversation(silent),
                wire=wire,
                voice=FakeVoice(),
                recognizer=Recognizer(),
                detector=Detector(),
                options=TurnTaking(silence_timeout_s=0),
                clock=clock,
            )
            group.create_task(call.run())
        for _ in range(100):
            for wire in wires:
                if wire.call is not None:
                    wire.call.hear(bytes(SILENCE))
            await asyncio.sleep(FRAME_S)
        held = tracemalloc.get_traced_memory()[0] - before
        for wire in wires:
            await wire.hang_up("over")
    tracemalloc.stop()
    return held / calls / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    report: dict[str, float] = {}
    for state in ("listening", "hearing", "speaking"):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            per_frame, sent = runner.run(measure(options.calls, options.seconds, state))
        report[f"{state}_us_per_frame"] = round(per_frame * 1e6, 2)
        report[f"{state}_cpu_s_per_call_minute"] = round(per_frame * 50 * 60, 3)
        report[f"{state}_frames_sent_per_call"] = round(sent / options.calls, 1)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        report["memory_kb_per_call"] = round(runner.run(memory(options.calls)), 1)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
