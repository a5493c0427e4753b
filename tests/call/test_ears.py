"""From frames to utterances: pre-roll, speculation, endpoint, faults of the recogniser, and bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.recognizer import FakeRecognizer
from tests.fakes.wire import LOUD, FakeDetector, FakeWire, ScriptedEars
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time
from voice_agent.call.clock import MediaClock
from voice_agent.call.ears import Ears
from voice_agent.call.listener import Lost
from voice_agent.call.utterance import Utterance
from voice_agent.speech.protocols import EngineError, PoolOverloaded, Priority, Transcript, Urgency, Voicing


class _Listener:
    """Writes down what the ears tell."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def caller_voice(self, utterance: Utterance) -> None:
        pass

    def caller_silence(self, utterance: Utterance) -> None:
        pass

    def caller_words(self, utterance: Utterance, text: str) -> None:
        self.told.append(("words", text))

    def caller_finished(self, utterance: Utterance, text: str) -> None:
        self.told.append(("finished", text))

    def caller_lost(self, utterance: Utterance, why: Lost) -> None:
        self.told.append(("lost", why))

    def speaks_over_agent(self) -> bool:
        return False


async def _hear(
    recognizer: FakeRecognizer, script: Callable[[Callable[[str], Any]], Any], options: Any = OPTIONS
) -> tuple[_Listener, Ears]:
    """Run ears alone. ``script`` gets a function that plays ``v`` and ``.`` frames in real time."""
    listener = _Listener()
    loop = asyncio.get_running_loop()
    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        ears = Ears(FakeDetector(delay_frames=1), recognizer, options, clock, loop.time, listener)
        running = group.create_task(ears.run())

        async def play(pattern: str) -> None:
            for kind in pattern:
                ears.hear(np.full(320, LOUD if kind == "v" else 0, np.int16).tobytes())
                await asyncio.sleep(0.02)

        await script(play)
        ears.close()
        assert clock.subscribers == 0
        running.cancel()
    return listener, ears


@virtual_time
async def test_the_pre_roll_before_the_onset_goes_to_the_recogniser() -> None:
    recognizer = FakeRecognizer(["Hello."])
    await _hear(recognizer, lambda play: play("." * 50 + "v" * 25 + "." * 40))
    # 300 ms before the onset was sure, the voice, and the pause that started the recogniser.
    assert recognizer.calls[0].seconds == pytest.approx(0.30 + 0.5 + 0.16, abs=0.021)


@virtual_time
async def test_the_recogniser_starts_at_the_pause_and_the_words_are_there_at_the_endpoint() -> None:
    loop = asyncio.get_running_loop()
    recognizer = FakeRecognizer(["Hello there."], seconds=0.1)
    finished: list[float] = []

    async def script(play: Any) -> None:
        await play("v" * 50)
        end = loop.time()
        await play("." * 40)
        finished.append(end)

    listener, _ = await _hear(recognizer, script)
    assert [c.priority for c in recognizer.calls] == [Priority.SPECULATIVE_TRANSCRIPT]
    assert recognizer.calls[0].at - finished[0] == pytest.approx(0.16, abs=0.021)
    assert listener.told == [("words", "Hello there."), ("finished", "Hello there.")]


@virtual_time
async def test_a_speculation_that_speech_overtook_becomes_a_partial_and_is_not_reused() -> None:
    recognizer = FakeRecognizer(["I want", "I want to pay."], seconds=0.2)
    listener, _ = await _hear(recognizer, lambda play: play("v" * 30 + "." * 10 + "v" * 30 + "." * 60))
    assert ("words", "I want") in listener.told
    assert listener.told[-1] == ("finished", "I want to pay.")
    assert len(recognizer.calls) == 2


class _Slowing(FakeRecognizer):
    """Takes longer for every call."""

    async def transcribe(self, pcm: Any, *, priority: Priority = Priority.FINAL_TRANSCRIPT) -> Transcript:
        self.seconds = 0.05 + 2.0 * len(self.calls)
        return await super().transcribe(pcm, priority=priority)


@virtual_time
async def test_words_from_before_a_resumption_never_stand_for_the_whole() -> None:
    recognizer = _Slowing(["I want,", "I want, to pay."])
    listener, _ = await _hear(recognizer, lambda play: play("v" * 30 + "." * 20 + "v" * 30 + "." * 150))
    assert [text for kind, text in listener.told if kind == "finished"] == ["I want, to pay."]


@virtual_time
async def test_a_blip_makes_no_utterance_and_costs_no_recognition() -> None:
    recognizer = FakeRecognizer(["Thank you."])
    listener, _ = await _hear(recognizer, lambda play: play("v" * 6 + "." * 60))
    assert recognizer.calls == []
    assert listener.told == [("lost", Lost.TOO_SHORT)]


@virtual_time
async def test_an_invented_phrase_is_no_utterance() -> None:
    refused = Transcript("Thanks for watching!", 1.0, no_speech_probability=0.9, accepted=False)
    listener, _ = await _hear(FakeRecognizer([refused]), lambda play: play("v" * 30 + "." * 80))
    assert listener.told == [("lost", Lost.NO_WORDS)]


class _Queueing(FakeRecognizer):
    """Notes when the job it was given became urgent."""

    risen: list[tuple[float, Priority]]

    async def transcribe(self, pcm: Any, *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT) -> Transcript:
        assert isinstance(priority, Urgency)
        loop = asyncio.get_running_loop()
        priority.watch(lambda: self.risen.append((loop.time(), priority.priority)))
        return await super().transcribe(pcm, priority=priority)


@virtual_time
async def test_a_guess_that_still_waits_when_the_caller_has_finished_becomes_urgent() -> None:
    recognizer = _Queueing(["Hello there."], seconds=1.5)
    recognizer.risen = []
    listener, _ = await _hear(recognizer, lambda play: play("v" * 50 + "." * 120))
    assert listener.told[-1] == ("finished", "Hello there.")
    assert len(recognizer.calls) == 1
    ((at, priority),) = recognizer.risen
    assert priority is Priority.FINAL_TRANSCRIPT
    assert at - recognizer.calls[0].at > 0.1


class _Contrary(FakeRecognizer):
    """Returns what is no transcript."""

    async def transcribe(self, pcm: Any, *, priority: Priority = Priority.FINAL_TRANSCRIPT) -> Transcript:
        await super().transcribe(pcm, priority=priority)
        return "Hello."  # type: ignore[return-value]


@virtual_time
async def test_a_recogniser_that_breaks_its_contract_costs_the_utterance_and_not_the_call() -> None:
    listener, _ = await _hear(_Contrary(["Hello."] * 2, seconds=0.05), lambda play: play("v" * 30 + "." * 90))
    assert listener.told == [("lost", Lost.FAILED)]


@virtual_time
async def test_a_refused_speculation_is_tried_again_with_priority() -> None:
    recognizer = FakeRecognizer([PoolOverloaded("full"), "Hello."], seconds=0.05)
    listener, _ = await _hear(recognizer, lambda play: play("v" * 30 + "." * 90))
    assert [c.priority for c in recognizer.calls] == [Priority.SPECULATIVE_TRANSCRIPT, Priority.FINAL_TRANSCRIPT]
    # At once, not when the longest silence is over.
    assert recognizer.calls[1].at - recognizer.calls[0].at == pytest.approx(0.05, abs=0.021)
    assert listener.told[-1] == ("finished", "Hello.")


@virtual_time
async def test_a_recogniser_that_fails_twice_loses_the_utterance() -> None:
    listener, _ = await _hear(FakeRecognizer([EngineError("no")]), lambda play: play("v" * 30 + "." * 90))
    assert listener.told == [("lost", Lost.FAILED)]


@virtual_time
async def test_a_recogniser_that_is_too_slow_is_not_waited_for() -> None:
    recognizer = FakeRecognizer(["late"], seconds=60)
    listener, _ = await _hear(recognizer, lambda play: play("v" * 30 + "." * 400))
    assert listener.told == [("lost", Lost.FAILED)]
    assert recognizer.cancelled == 1


@virtual_time
async def test_ten_minutes_of_speech_are_committed_in_bounded_pieces() -> None:
    recognizer = FakeRecognizer(["blah."], seconds=0.5)
    listener, ears = await _hear(recognizer, lambda play: play("v" * 30_000 + "." * 80))
    finished = [text for kind, text in listener.told if kind == "finished"]
    assert len(finished) == 10
    assert max(call.seconds for call in recognizer.calls) <= 60.0
    assert ears.open is None


@virtual_time
@pytest.mark.parametrize("size", [1, 7, 320, 639, 641, 1000, 6400, 33333])
async def test_any_chunking_is_heard_the_same(size: int) -> None:
    recognizer = FakeRecognizer(["Hello."], seconds=0.0)
    listener = _Listener()
    audio = b"".join(np.full(320, LOUD if c == "v" else 0, np.int16).tobytes() for c in "." * 20 + "v" * 30 + "." * 100)

    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        ears = Ears(FakeDetector(1), recognizer, OPTIONS, clock, asyncio.get_running_loop().time, listener)
        running = group.create_task(ears.run())
        for at in range(0, len(audio), size):
            ears.hear(audio[at : at + size])
            await asyncio.sleep(size / 32000)
        ears.hear(b"")
        await asyncio.sleep(1.5)
        ears.close()
        running.cancel()
    assert listener.told[-1] == ("finished", "Hello.")
    assert ears.frames >= len(audio) // 640


class _BrokenDetector:
    def push(self, frame: bytes) -> Voicing:
        raise RuntimeError("no model")

    def reset(self) -> None:
        pass


@virtual_time
async def test_a_detector_that_fails_is_reported_once_and_the_call_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    talk = ScriptedConversation(says("Hello."))
    outcome = await place(FakeWire(3), talk, detector=_BrokenDetector(), calls=[])
    assert (talk.heard(), outcome.reason) == (["Hello."], "caller_hang_up")
    assert len([r for r in caplog.records if "could not be processed" in r.getMessage()]) == 1


@virtual_time
async def test_a_caller_who_is_not_understood_is_told_so_and_stays_on_the_line() -> None:
    wire = FakeWire(14)
    wire.speak(1.0, "what is my balance?")
    ears = ScriptedEars(wire, fail=EngineError("no"))
    talk = ScriptedConversation(says("Hello."), says("Fifty."))
    wire.at(7.0, lambda call: setattr(ears, "fail", None))
    wire.speak(8.0, "what is my balance?")
    await place(wire, talk, recognizer=ears)
    assert wire.transcripts("agent") == ["Hello.", "Sorry, I could not hear you.", "Fifty."]
    assert talk.heard() == ["Hello.", "Fifty."]
    assert talk.of("note") == ["utterance_lost", "line"]


@virtual_time
async def test_a_long_noise_that_took_the_floor_is_asked_about() -> None:
    wire = FakeWire(10)
    wire.noise(1.0, 1.5)
    talk = ScriptedConversation(says("A greeting of some length that is interrupted by a lorry."))
    await place(wire, talk)
    assert talk.replies[0][1].unheard
    assert wire.transcripts("agent")[-1] == "Sorry, I could not hear you."
