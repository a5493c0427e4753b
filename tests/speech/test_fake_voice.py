"""The fake keeps the promises of the Protocol it stands in for, or tests that lean on it prove nothing."""

from __future__ import annotations

import asyncio

from tests.fakes.voice import FakeVoice, fake_speech
from tests.support.virtual_time import virtual_time
from voice_agent.speech.protocols import Voice

TEXT = "Good morning. Your balance is $3.50! Anything else?\n"


@virtual_time
async def test_pieces_concatenate_to_the_text_after_the_scripted_delays() -> None:
    voice: Voice = FakeVoice(first_byte_s=0.3, piece_s=0.1)
    times, texts = [], []
    async for speech in voice.speak(TEXT):
        times.append(round(asyncio.get_running_loop().time(), 3))
        texts.append(speech.text)
    assert "".join(texts) == TEXT
    assert times == [0.3, 0.4, 0.5]


def test_audio_is_sixty_milliseconds_a_character_with_a_span_for_each_word() -> None:
    speech = fake_speech("Hi you.")
    assert speech.seconds == 7 * 0.06
    assert [(s.start, s.end, s.first, s.last) for s in speech.spans] == [(0, 2, 0, 1920), (3, 7, 2880, 6720)]


@virtual_time
async def test_a_voice_that_ignores_cancel_keeps_sending() -> None:
    voice = FakeVoice(first_byte_s=1.0, ignore_cancel=True)

    async def drain() -> list[str]:
        return [speech.text async for speech in voice.speak("One. Two.")]

    task = asyncio.get_running_loop().create_task(drain())
    await asyncio.sleep(0.2)
    task.cancel()
    assert await task == ["One. ", "Two."]


@virtual_time
async def test_a_closed_generator_is_counted_and_scripted_pieces_fail() -> None:
    voice = FakeVoice(fail_pieces={0})
    stream = voice.speak("One. Two.")
    first = await anext(stream)
    assert first.failed and not first.spans
    await stream.aclose()
    assert (voice.open, voice.closed) == (0, 1)
