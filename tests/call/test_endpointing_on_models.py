"""A real voice pauses at a comma, a real recogniser puts a full stop there, and the answer does not sound into it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import onnxruntime
import pytest
import pytest_asyncio

from scripts.bench.endpointing import silences
from scripts.bench.endpointing_speech import assemble, spoken
from voice_agent.call.endpointing import Endpoint, Endpointing
from voice_agent.config import SttOptions, TtsOptions, TurnTaking, VadOptions
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.vad import DetectorFactory
from voice_agent.speech.whisper import WhisperRecognizer

pytestmark = pytest.mark.models
OPTIONS = TurnTaking()


class _Listening:
    """Speaks lines with a pause between their parts, and judges the silences in them."""

    def __init__(self, pool: SpeechPool) -> None:
        self.voice = PiperSynthesizer(TtsOptions(), pool, 2)
        self.recognizer = WhisperRecognizer(SttOptions(), pool, 2)
        self.detectors = DetectorFactory(VadOptions())
        for engine in (self.voice, self.recognizer, self.detectors):
            engine.load()

    async def silences(self, *line: str) -> list[tuple[int, Endpoint]]:
        """Return the length of each silence in ms, and what was required of it."""
        # The voice trails off for up to 0.15 s, so that a listener hears pauses of 0.5 to 0.65 s.
        pcm = assemble(await spoken(self.voice, line), 0.5)
        found = []
        for at, ms in silences(pcm, self.detectors, OPTIONS):
            heard = await self.recognizer.transcribe(pcm[:at])
            found.append((ms, Endpointing(OPTIONS).endpoint(heard.text or None, None, heard.stop_probability)))
        return found


@pytest_asyncio.fixture
async def listening() -> AsyncIterator[_Listening]:
    # Every rendering of a line differs; a test needs the same one each time.
    onnxruntime.set_seed(11)
    pool = SpeechPool(1)
    pool.start()
    yield _Listening(pool)
    await pool.aclose(5)


async def test_no_answer_sounds_into_a_pause_at_a_comma_and_questions_are_answered_at_once(
    listening: _Listening,
) -> None:
    for line in (
        ("I would like to book a technician,", "for next Tuesday morning."),
        ("I need a new router,", "because the old one is broken."),
        ("I would like a coffee and", "a piece of apple cake."),
        ("My number is", "oh one seven two,", "three four five."),
    ):
        inner = (await listening.silences(*line))[:-1]
        assert len(inner) >= len(line) - 1, line
        for ms, endpoint in inner:
            assert ms < endpoint.reply_ms, (line, ms, endpoint)
    for line in (("What is my balance?",), ("What time do you close on Friday?",)):
        assert (await listening.silences(*line))[-1][1] == Endpoint(300, 300), line
    _, statement = (await listening.silences("I would like to book an appointment with the dentist."))[-1]
    assert statement == Endpoint(300, 700)
