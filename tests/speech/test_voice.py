"""A call always gets its pieces, in order, whatever the engines do, and leaves nothing running behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.synthesizer import FakeSynthesizer
from tests.fakes.voice import fake_speech
from tests.support.virtual_time import virtual_time
from voice_agent.config import CacheOptions
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.protocols import EngineError, PoolOverloaded, Priority, Speech, Voice
from voice_agent.speech.voice import MAX_PIECE_BYTES, CachedVoice, fallback_audio
from voice_agent.telemetry.metrics import ENGINE_FAILURES

THREE = "This is the first. Here is the second. And that was all."
PIECES = ["This is the first. ", "Here is the second. ", "And that was all."]
SENTENCES = [piece.strip() for piece in PIECES]


def voice_of(engine: FakeSynthesizer, fallback: FakeSynthesizer | None = None, timeout_s: float = 10.0) -> CachedVoice:
    # Without a disk there are no threads, so the whole test runs in virtual time.
    return CachedVoice(engine, ResponseCache(CacheOptions(disk_mb=0)), fallback=fallback, timeout_s=timeout_s)


async def drain(stream: AsyncGenerator[Speech, None]) -> list[Speech]:
    return [speech async for speech in stream]


def failures() -> float:
    return ENGINE_FAILURES.labels(engine="tts")._value.get()


@virtual_time
async def test_pieces_come_in_order_and_only_the_first_is_urgent() -> None:
    engine = FakeSynthesizer()
    voice: Voice = voice_of(engine)
    assert [speech.text for speech in await drain(voice.speak(THREE, first=True))] == PIECES
    assert engine.asked == list(zip(SENTENCES, [Priority.FIRST_AUDIO, Priority.SPEECH, Priority.SPEECH], strict=True))


@virtual_time
async def test_one_piece_is_made_ahead_while_the_last_is_played_and_never_two() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    stream = voice_of(engine).speak(THREE)
    await anext(stream)
    await asyncio.sleep(5)
    assert engine.texts == SENTENCES[:2]
    began = asyncio.get_running_loop().time()
    assert (await anext(stream)).text == PIECES[1]
    assert asyncio.get_running_loop().time() == began
    assert engine.most_running == 1
    await stream.aclose()


@virtual_time
async def test_closing_drops_the_piece_made_ahead() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    stream = voice_of(engine).speak(THREE)
    await anext(stream)
    await asyncio.sleep(0.1)
    await stream.aclose()
    assert engine.cancelled == [SENTENCES[1]]
    assert engine.running == 0


@virtual_time
async def test_cancelling_the_consumer_cancels_the_synthesis_it_waits_for() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(drain(voice_of(engine).speak(THREE)))
        await asyncio.sleep(0.1)
        task.cancel()
    assert engine.cancelled == [SENTENCES[0]]


@virtual_time
async def test_a_failure_is_tried_once_more_and_counted() -> None:
    before = failures()
    engine = FakeSynthesizer(script=[EngineError("broken")])
    (speech,) = await drain(voice_of(engine).speak("Hello."))
    assert not speech.failed
    assert speech.pcm
    assert engine.texts == ["Hello.", "Hello."]
    assert failures() - before == 1


@virtual_time
async def test_after_two_failures_the_fallback_engine_speaks() -> None:
    engine = FakeSynthesizer(script=[EngineError("broken"), RuntimeError("a bug")])
    second = FakeSynthesizer(identity="second/1")
    (speech,) = await drain(voice_of(engine, second).speak("Hello."))
    assert not speech.failed
    assert (len(engine.asked), second.texts) == (2, ["Hello."])


@virtual_time
async def test_when_all_engines_fail_pieces_come_as_failed_and_the_text_comes_all_the_same() -> None:
    engine = FakeSynthesizer(script=[EngineError("broken")] * 6)
    pieces = await drain(voice_of(engine).speak(THREE))
    assert [piece.text for piece in pieces] == PIECES
    assert all(piece.failed and not piece.spans for piece in pieces)
    assert [piece.pcm for piece in pieces] == [fallback_audio()] * 3


@virtual_time
async def test_speech_goes_on_after_a_piece_that_failed() -> None:
    engine = FakeSynthesizer(script=[None, EngineError("broken"), EngineError("broken"), None])
    assert [piece.failed for piece in await drain(voice_of(engine).speak(THREE))] == [False, True, False]


@virtual_time
async def test_a_full_queue_is_not_asked_twice() -> None:
    engine = FakeSynthesizer(script=[PoolOverloaded("full")])
    second = FakeSynthesizer()
    (speech,) = await drain(voice_of(engine, second).speak("Hello."))
    assert not speech.failed
    assert (len(engine.asked), len(second.asked)) == (1, 1)


@virtual_time
async def test_an_engine_that_hangs_counts_as_failed() -> None:
    engine = FakeSynthesizer(seconds=3600)
    (speech,) = await drain(voice_of(engine, timeout_s=2).speak("Hello."))
    assert speech.failed
    assert asyncio.get_running_loop().time() == 4
    assert engine.running == 0


class Contrary(FakeSynthesizer):
    """Breaks its contract: returns what is no speech, or raises what is no `Exception`."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer = answer

    async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer  # type: ignore[return-value]


@virtual_time
@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"\0\0",
        Speech("Hello.", "samples", ()),  # type: ignore[arg-type]
        Speech("Hello.", bytes(MAX_PIECE_BYTES + 2), ()),
        asyncio.CancelledError(),
        RuntimeError("broken"),
    ],
)
async def test_an_engine_that_breaks_its_contract_counts_as_failed(answer: object) -> None:
    (speech,) = await drain(voice_of(Contrary(answer)).speak("Hello."))
    assert speech.failed
    await voice_of(Contrary(answer)).warm(["Hello."])


@virtual_time
async def test_emoji_alone_ask_no_engine_and_have_no_audio() -> None:
    engine = FakeSynthesizer()
    (speech,) = await drain(voice_of(engine).speak("👍 🎉"))
    assert (speech.text, speech.pcm, len(speech.spans), engine.asked) == ("👍 🎉", b"", 2, [])


@virtual_time
async def test_no_text_has_no_pieces() -> None:
    assert await drain(voice_of(FakeSynthesizer()).speak("")) == []
    assert voice_of(FakeSynthesizer()).cached("") is None


@virtual_time
async def test_canned_text_is_made_once_and_then_comes_whole_from_memory() -> None:
    engine = FakeSynthesizer()
    voice = voice_of(engine)
    assert voice.cached(THREE) is None
    first = await drain(voice.speak(THREE, canned=True))
    (again,) = await drain(voice.speak(THREE, canned=True))
    assert engine.texts == SENTENCES
    assert again == voice.cached(THREE)
    assert again.text == THREE
    assert again.pcm == b"".join(speech.pcm for speech in first)


@virtual_time
async def test_joined_speech_has_the_spans_of_its_pieces_at_their_place() -> None:
    voice = voice_of(FakeSynthesizer())
    await voice.warm([THREE])
    whole = voice.cached(THREE)
    assert whole is not None
    words = [whole.text[span.start : span.end] for span in whole.spans]
    assert words == THREE.split()
    at = len(PIECES[0])
    offset = len(fake_speech(SENTENCES[0]).pcm) // 2
    here = fake_speech(PIECES[1]).spans[0]
    moved = whole.spans[len(PIECES[0].split())]
    assert (moved.start, moved.first) == (here.start + at, here.first + offset)


@virtual_time
async def test_text_of_the_model_is_not_kept_but_found_when_it_is_a_canned_line() -> None:
    engine = FakeSynthesizer()
    voice = voice_of(engine)
    await drain(voice.speak("Generated text."))
    assert voice.cached("Generated text.") is None
    await voice.warm([PIECES[2] + "\n"])
    await drain(voice.speak(THREE))
    assert engine.texts.count(SENTENCES[2]) == 1


@virtual_time
async def test_white_space_around_a_canned_line_makes_no_other_line_of_it() -> None:
    engine = FakeSynthesizer()
    voice = voice_of(engine)
    await voice.warm(["Good day."])
    found = voice.cached("  Good day. \n")
    assert found is not None
    assert found.text == "  Good day. \n"
    assert [found.text[span.start : span.end] for span in found.spans] == ["Good", "day."]
    assert len(engine.asked) == 1


@virtual_time
async def test_a_disk_that_hangs_does_not_keep_the_caller_waiting() -> None:
    class HangingCache(ResponseCache):
        async def load(self, key: str) -> Speech | None:
            await asyncio.sleep(3600)
            return None

    voice = CachedVoice(FakeSynthesizer(), HangingCache(CacheOptions(disk_mb=0)))
    (speech,) = await drain(voice.speak("Good day.", canned=True))
    assert not speech.failed
    assert asyncio.get_running_loop().time() <= 1


@virtual_time
async def test_two_calls_that_ask_for_the_same_canned_text_have_it_made_once() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    voice = voice_of(engine)
    one, other = await asyncio.gather(*(drain(voice.speak("Good morning.", canned=True)) for _ in range(2)))
    assert one == other
    assert engine.texts == ["Good morning."]


@virtual_time
async def test_the_second_call_makes_it_itself_when_the_first_hangs_up_meanwhile() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    voice = voice_of(engine)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(drain(voice.speak("Good morning.", canned=True)))
        await asyncio.sleep(0.1)
        second = group.create_task(drain(voice.speak("Good morning.", canned=True)))
        await asyncio.sleep(0.1)
        first.cancel()
    assert [speech.text for speech in second.result()] == ["Good morning."]
    assert engine.texts == ["Good morning."] * 2


@virtual_time
async def test_a_caller_does_not_wait_for_the_warm_up_of_the_same_text() -> None:
    engine = FakeSynthesizer(seconds=0.3)
    voice = voice_of(engine)
    async with asyncio.TaskGroup() as group:
        group.create_task(voice.warm(["Good morning."]))
        await asyncio.sleep(0.1)
        await drain(voice.speak("Good morning.", canned=True, first=True))
        assert [priority for _, priority in engine.asked] == [Priority.WARM_UP, Priority.FIRST_AUDIO]


@virtual_time
async def test_warming_reports_progress_passes_over_faults_and_takes_each_text_once() -> None:
    engine = FakeSynthesizer(script=[EngineError("broken"), EngineError("broken")])
    voice = voice_of(engine)
    seen: list[tuple[int, int]] = []
    await voice.warm(["Broken.", "Whole.", "Whole.", "👍"], lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert voice.cached("Broken.") is None
    assert voice.cached("Whole.") is not None
    assert {priority for _, priority in engine.asked} == {Priority.WARM_UP}


@virtual_time
async def test_an_engine_that_ignores_cancellation_is_abandoned_in_time() -> None:
    class Stubborn(FakeSynthesizer):
        async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
            if not self.asked:
                return await super().synthesize(text, priority=priority)
            until = asyncio.get_running_loop().time() + 3
            while asyncio.get_running_loop().time() < until:
                try:
                    await asyncio.sleep(until - asyncio.get_running_loop().time())
                except asyncio.CancelledError:
                    continue
            return fake_speech(text)

    stream = voice_of(Stubborn()).speak(THREE)
    await anext(stream)
    await asyncio.sleep(0.1)
    began = asyncio.get_running_loop().time()
    await stream.aclose()
    assert asyncio.get_running_loop().time() - began == pytest.approx(0.5)
    await asyncio.sleep(10)


def test_the_fallback_audio_is_a_few_seconds_of_speech() -> None:
    assert 2 * 32000 < len(fallback_audio()) < 6 * 32000
