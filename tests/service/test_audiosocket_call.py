"""The example agent on a call from Asterisk: real models, 8 kHz over AudioSocket, in real time."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.support.audiosocket_caller import AudioSocketCaller
from tests.support.flite import said
from tests.support.lines import serving, until
from voice_agent.audio.resample import resample
from voice_agent.caller.audio import voice_bounds
from voice_agent.service.service import Service, build_service

pytestmark = [pytest.mark.alone, pytest.mark.models]
log = logging.getLogger(__name__)
EXAMPLE = Path(__file__).parents[2]
PARTS = ("agent.yml", "memory.yml", "responses.yml", "skills", "references", "tools", "lib")
SILENCE = bytes(320)
LEVEL = 100
"""Samples of agent audio above this are sound."""


@asynccontextmanager
async def answering(root: Path) -> AsyncIterator[tuple[Service, int]]:
    """Serve the example agent with AudioSocket; yields the service and the port."""
    for part in PARTS:
        source = EXAMPLE / part
        if source.is_dir():
            shutil.copytree(source, root / part)
        elif source.exists():
            shutil.copy(source, root / part)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = yaml.safe_load((EXAMPLE / "integrations.yml").read_text()) or {}
    settings.setdefault("channels", {})["audiosocket"] = {"enabled": True, "port": port}
    settings["store"] = {"path": ":memory:"}
    (root / "integrations.yml").write_text(yaml.safe_dump(settings))
    service = build_service(root)
    async with serving(service, channels=service.channels):
        await until(lambda: not service.missing, within_s=90)
        yield service, port


class Asterisk:
    """Sends 20 ms every 20 ms, silence where nobody speaks, as a channel does."""

    def __init__(self, caller: AudioSocketCaller) -> None:
        self.caller = caller
        self._queue: list[bytes] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while not self.caller.over:
            self.caller.send(self.caller.kind, self._queue.pop(0) if self._queue else SILENCE)
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * 0.02 - loop.time()))

    def say(self, text: str) -> float:
        """Say something from the next frame on; returns the loop's time at which its voice begins."""
        pcm = said(text)
        first, _ = voice_bounds(pcm, 16000)
        wire = resample(pcm.tobytes(), 16000, 8000)
        self._queue += [wire[at : at + 320].ljust(320, b"\0") for at in range(0, len(wire), 320)]
        return asyncio.get_running_loop().time() + first / 16000

    def sounds(self, since: float) -> list[float]:
        """When frames came in which the agent is heard."""
        frames = zip(self.caller.received, self.caller.arrivals, strict=False)
        return [
            at
            for (kind, payload), at in frames
            if at >= since and kind == self.caller.kind and np.abs(np.frombuffer(payload, "<i2")).max(initial=0) > LEVEL
        ]


@pytest.mark.timeout(180)
async def test_a_caller_is_greeted_understood_and_yielded_to(tmp_path: Path) -> None:
    async with answering(tmp_path) as (service, port), asyncio.TaskGroup() as group:
        loop = asyncio.get_running_loop()
        caller = await AudioSocketCaller.dial(port)
        asterisk = Asterisk(caller)
        group.create_task(asterisk.run())
        await until(lambda: asterisk.sounds(0), within_s=10)
        await _quiet(asterisk)
        greeting = await _heard(service, caller.audio)
        assert {"calling", "help"} & set(re.findall("[a-z]+", greeting.lower())), greeting

        before = len(caller.audio)
        asterisk.say("When are you open on Saturday?")
        asked, answer = loop.time(), ""
        while not re.search(r"saturday|open|ten|10|nine|9", answer, re.I):
            # A machine that does other things says "one moment" first.
            assert loop.time() < asked + 30, answer
            await until(lambda: asterisk.sounds(loop.time() - 0.1), within_s=20)
            await _quiet(asterisk)
            answer = await _heard(service, caller.audio[before:])

        asterisk.say("Tell me about your plans and opening hours please.")
        asked = loop.time()
        await until(lambda: len(asterisk.sounds(asked + 2.0)) > 40, within_s=20)
        onset = asterisk.say("Stop, wait a moment please.")
        await asyncio.sleep(1.2)
        last = max(asterisk.sounds(0))
        log.info("onset to last agent audio: %.3f s", last - onset)
        # 0.15 s is the aim; a machine that does other things meanwhile is given more.
        assert last - onset <= 0.4
        assert max(np.diff(asterisk.sounds(asked + 2.0)), default=0.0) < 1.5

        await caller.hang_up()
        await until(lambda: caller.over, within_s=10)
        await caller.close()


async def _quiet(asterisk: Asterisk) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() - max(asterisk.sounds(0), default=loop.time()) < 0.8:  # noqa: ASYNC110 - frames, not events
        await asyncio.sleep(0.05)


async def _heard(service: Service, pcm: bytes) -> str:
    transcript = await service.calls.engines.recognizer.transcribe(np.frombuffer(pcm, "<i2"))
    return transcript.text
