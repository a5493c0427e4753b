"""The example agent on a real call: real Whisper, Piper, Silero and embedded model, over a real WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.lines import serving, until
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.audio.frames import FRAME_BYTES, SILENCE
from voice_agent.service.service import Service, build_service
from voice_agent.speech.splitter import split

pytestmark = [pytest.mark.alone, pytest.mark.models]
EXAMPLE = Path(__file__).parents[2]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


class Talker:
    """Sends audio in real time, silence where there is nothing to say, as a telephone does."""

    def __init__(self, service: Service, caller: WebSocketCaller) -> None:
        self._service, self._caller = service, caller
        self._queue: list[bytes] = []

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._caller.socket.send(self._queue.pop(0) if self._queue else SILENCE)
                sent += 1
                await asyncio.sleep(max(0.0, began + sent * 0.02 - loop.time()))

    async def say(self, text: str) -> None:
        pcm = b""
        for piece in split(text):
            async for speech in self._service.calls.engines.voice.speak(piece, canned=True):
                pcm += speech.pcm
        self._queue += [pcm[i : i + FRAME_BYTES].ljust(FRAME_BYTES, b"\0") for i in range(0, len(pcm), FRAME_BYTES)]


def said(caller: WebSocketCaller, role: str) -> list[str]:
    return [m["text"] for m in caller.of("transcript") if m["role"] == role and m["final"]]


async def quiet(caller: WebSocketCaller) -> None:
    """Wait until no agent audio has come for a while."""
    loop = asyncio.get_running_loop()
    length, since = len(caller.audio), loop.time()
    while loop.time() - since < 0.8:
        await asyncio.sleep(0.05)
        if len(caller.audio) != length:
            length, since = len(caller.audio), loop.time()


@pytest.mark.timeout(180)
async def test_words_are_understood_and_the_answer_is_what_is_heard() -> None:
    service = build_service(EXAMPLE)
    async with serving(service) as address:
        await until(lambda: not service.missing, within_s=90)
        caller = await WebSocketCaller.dial(address)
        talker = Talker(service, caller)
        async with asyncio.TaskGroup() as group:
            talking = group.create_task(talker.run())
            await until(lambda: said(caller, "agent"))
            await quiet(caller)
            greeting = len(caller.audio)

            await talker.say("When are you open on Saturday?")
            await until(lambda: said(caller, "user"), within_s=20)
            assert words(said(caller, "user")[0]) == words("When are you open on Saturday?")
            await until(lambda: len(caller.audio) > greeting, within_s=20)
            await quiet(caller)
            answer = said(caller, "agent")[-1]
            heard = await service.calls.engines.recognizer.transcribe(np.frombuffer(caller.audio[greeting:], "<i2"))
            missing = set(words(answer)) - set(words(heard.text))
            assert len(missing) <= 0.2 * len(set(words(answer))), (answer, heard.text)

            await talker.say("Tell me about your plans and opening hours please.")
            before = len(caller.audio)
            await until(lambda: len(caller.audio) > before + 16000, within_s=20)
            clears = caller.clears
            await talker.say("Stop, wait a moment please.")
            await until(lambda: caller.clears > clears, within_s=10)

            await caller.hang_up()
            await until(lambda: caller.over)
            await talking
