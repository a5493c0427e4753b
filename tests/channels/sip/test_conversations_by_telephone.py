"""Real telephones talk with the real service: ears, voice and dialogue of the example agent.

All calls go on at once, so that they take no longer than one. What a telephone heard is what its own recording holds.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import wave
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.baresip import baresip
from tests.support.clips import read_clip
from tests.support.flite import said
from tests.support.word_errors import normalized, word_errors
from voice_agent.audio.resample import resample
from voice_agent.config import SttOptions
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.whisper import WhisperRecognizer

pytestmark = [pytest.mark.alone, pytest.mark.models, pytest.mark.service]

ROOT = Path(__file__).parents[3]
SIP_PORT, HTTP_PORT = 22600, 22601
GREETING = "Thanks for calling Northline Telecom. How can I help?"
CODECS = ("pcmu", "pcma", "g722")
GREETED_S = 4.5
"""When callers who wait for the end of the greeting begin to speak."""
INTERRUPTED_S = 11.0
"""When the caller who interrupts does so: in the midst of an answer that is as long as the others hear it."""
LISTENED_S = 16.5


@dataclass
class Heard:
    """What one telephone heard and sent, as 16 kHz samples from its own recordings, and what it was told."""

    pcm: NDArray[np.int16]
    spoken: NDArray[np.int16]
    events: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Heard]:
    return asyncio.run(all_calls(tmp_path_factory.mktemp("telephones")))


async def all_calls(directory: Path) -> dict[str, Heard]:
    async with service(directory):
        asking, leaving = (GREETED_S, "When are you open?"), (GREETED_S, "Goodbye.")
        parts = [
            call(directory / "g722", 22640, "g722", [asking]),
            call(directory / "pcmu", 22700, "pcmu", [leaving, (11.5, "Five.")], until_closed=True),
            call(directory / "pcma", 22760, "pcma", [asking, (INTERRUPTED_S, "Stop please, stop.")]),
        ]
        results = await asyncio.gather(*parts)
    return dict(zip(("g722", "pcmu", "pcma"), results, strict=True))


@asynccontextmanager
async def service(directory: Path) -> AsyncIterator[None]:
    command = [
        sys.executable,
        "-m",
        "voice_agent",
        "run",
        str(ROOT),
        "--port",
        str(HTTP_PORT),
        "--sip-port",
        str(SIP_PORT),
    ]
    with (directory / "service.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stderr=log, cwd=directory, env=os.environ | {"NO_COLOR": "1"}
        )
        try:
            async with httpx.AsyncClient(timeout=2) as client, asyncio.timeout(60):
                while not await ready(client):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.2)
            yield
        finally:
            process.terminate()
            async with asyncio.timeout(20):
                await process.wait()
    assert process.returncode == 0
    written = (directory / "service.log").read_text()
    assert "Traceback" not in written
    assert "5550123" not in written, "no number in a log"


async def ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{HTTP_PORT}/readyz")).status_code == 200
    except httpx.TransportError:
        return False


def written(directory: Path, rate: int, lines: Sequence[tuple[float, str]]) -> Path:
    """Write what a caller says into a WAV file."""
    directory.mkdir()
    pcm = np.zeros(60 * 16000, np.int16)
    for at_s, words in lines:
        speech = said(words)
        pcm[int(at_s * 16000) : int(at_s * 16000) + len(speech)] = speech
    with wave.open(str(directory / "spoken.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(resample(pcm.tobytes(), 16000, rate))
    return directory / "spoken.wav"


async def call(
    directory: Path, port: int, codec: str, lines: Sequence[tuple[float, str]], *, until_closed: bool = False
) -> Heard:
    """Dial, say the lines at their times, and hang up when the answer has been said."""
    spoken = written(directory, 16000 if codec == "g722" else 8000, lines)
    async with baresip(directory, port, codec=codec, speaks=spoken) as phone:
        await phone.dial(f"sip:agent@127.0.0.1:{SIP_PORT}")
        await phone.event("CALL_ESTABLISHED", 15)
        if until_closed:
            await phone.event("CALL_CLOSED", 30)
        else:
            await asyncio.sleep(LISTENED_S)
            await phone.hang_up()
            await phone.event("CALL_CLOSED", 10)
        events = [str(event["type"]) for event in phone.events]
        return Heard(read_clip(phone.heard()), read_clip(phone.sent()), events)


@pytest.fixture(scope="module")
def transcripts(calls: Mapping[str, Heard]) -> Mapping[str, str]:
    async def transcribe() -> dict[str, str]:
        pool = SpeechPool(1)
        recognizer = WhisperRecognizer(SttOptions(), pool, threads=2)
        await asyncio.to_thread(recognizer.load)
        pool.start()
        try:
            return {name: await words_of(recognizer, heard.pcm) for name, heard in calls.items()}
        finally:
            await pool.aclose(10)

    return asyncio.run(transcribe())


async def words_of(recognizer: WhisperRecognizer, pcm: NDArray[np.int16]) -> str:
    """Stretches of speech, each transcribed by itself."""
    said_parts = []
    for start, end in sounding(pcm):
        part = pcm[max(0, start - 3200) : end + 3200]
        said_parts.append((await recognizer.transcribe(part)).text)
    return " ".join(said_parts)


def sounding(pcm: NDArray[np.int16], gap_s: float = 0.7) -> list[tuple[int, int]]:
    """Return the stretches that sound, in samples, divided by ``gap_s`` of silence."""
    loud = np.flatnonzero(np.abs(pcm.astype(int)) > 400)
    if not len(loud):
        return []
    cuts = np.flatnonzero(np.diff(loud) > gap_s * 16000)
    starts, ends = np.r_[loud[0], loud[cuts + 1]], np.r_[loud[cuts], loud[-1]]
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_telephone_heard_is_the_greeting(transcripts: Mapping[str, str], codec: str) -> None:
    wanted = normalized(GREETING)
    heard = normalized(transcripts[codec])[: len(wanted)]
    assert word_errors(wanted, heard) <= 1, transcripts[codec]


@pytest.mark.parametrize("codec", ["g722", "pcma"])
def test_what_the_caller_said_was_understood(transcripts: Mapping[str, str], codec: str) -> None:
    after = " ".join(normalized(transcripts[codec])[len(normalized(GREETING)) :])
    assert "open" in after, transcripts[codec]


def test_the_agent_hangs_up_after_its_goodbye(calls: Mapping[str, Heard], transcripts: Mapping[str, str]) -> None:
    assert "CALL_CLOSED" in calls["pcmu"].events
    assert "goodbye" in " ".join(normalized(transcripts["pcmu"])).replace("good bye", "goodbye")


def test_a_caller_who_speaks_into_the_answer_hears_it_fall_silent(
    calls: Mapping[str, Heard], transcripts: Mapping[str, str], record_property: pytest.RecordProperty
) -> None:
    whole, cut = (" ".join(normalized(transcripts[codec])) for codec in ("g722", "pcma"))
    # The same question: one caller hears the answer to its end, the other only what came before "stop".
    assert "monday" in whole and "sunday" in whole, whole
    assert "monday" in cut and "sunday" not in cut, cut
    call = calls["pcma"]
    # Both recordings end with the call; the one of what was heard begins with the first packet.
    onset = sounding(call.spoken)[1][0] - (len(call.spoken) - len(call.pcm))
    before, after = next(
        (end, start) for (_, end), (start, _) in itertools.pairwise(sounding(call.pcm, 0.4)) if end > onset
    )
    record_property("stop_s", round((before - onset) / 16000, 3))
    # What followed is another reply, after a silence of the agent's own.
    assert (after - before) / 16000 >= 0.4
