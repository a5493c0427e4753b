"""Audio of an interrupted turn is heard after the interruption, or in the next reply.

Right: cancellation is keyed on "a turn exists", never on "audio has started"; every frame belongs to a turn, and the
sink drops what is not current, whoever still sends it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice, fake_speech
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.speech.protocols import Speech

ANSWER = "A short answer that takes a little while to say."
LONG = "This is the first of several long sentences. And here is the second of them. And a third one to end with."


class _Tagged(FakeVoice):
    """Remembers which frames belong to which text."""

    def frames_of(self, text: str, wire: FakeWire) -> list[float]:
        pcm = fake_speech(text).pcm
        known = {pcm[at : at + 640] for at in range(0, len(pcm) - 640, 640)}
        return [t for t, frame in wire.frames if frame in known]


async def _long(speaker: Speaker) -> None:
    speaker.say(LONG)


@virtual_time
async def test_a_barge_in_before_the_first_audio_silences_the_turn_for_good() -> None:
    """The synthesis takes 2 s; the caller goes on speaking long before it is there."""
    wire = FakeWire(12)
    wire.speak(1.0, "what are your hours?")
    wire.speak(2.6, "no I mean my balance.")
    voice = FakeVoice(first_byte_s=1.5, cached=["Hello.", "Fifty."])
    talk = ScriptedConversation(says("Hello."), _long, says("Fifty."))
    await place(wire, talk, voice=voice)
    assert talk.of("turn")[-1].endswith("no I mean my balance.")
    expected = len(fake_speech("Hello.").pcm) + len(fake_speech("Fifty.").pcm)
    assert wire.audible() == pytest.approx(expected / 32000, abs=0.05)
    assert talk.heard() == ["Hello.", "", "Fifty."]


class _Stubborn:
    """An engine that ignores cancellation and sends on for seconds."""

    def __init__(self) -> None:
        self.inner = FakeVoice(first_byte_s=0.0, piece_s=1.5, ignore_cancel=True)

    def cached(self, text: str) -> Speech | None:
        return fake_speech(text) if text == ANSWER else None

    def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        return self.inner.speak(text, canned=canned, first=first)


@virtual_time
async def test_an_engine_that_ignores_cancellation_does_not_leak_into_the_next_reply() -> None:
    """Late pieces of turn one arrive while turn two speaks."""
    wire = FakeWire(14)
    wire.speak(1.5, "tell me everything you know.")
    wire.speak(4.0, "stop stop stop please.")
    talk = ScriptedConversation(says(ANSWER), _long, says(ANSWER))
    await place(wire, talk, voice=_Stubborn())
    answer = fake_speech(ANSWER).seconds
    after = wire.audible(5.0)
    assert after == pytest.approx(answer, abs=0.05), "only the new answer is heard after the interruption"


@virtual_time
async def test_at_most_one_faded_frame_follows_the_pause() -> None:
    """Half a syllable after the interruption."""
    wire = FakeWire(8)
    wire.speak(2.0, "stop stop stop please.")
    await place(wire, ScriptedConversation(_long, says("")))
    (cleared, *_) = wire.clears
    assert cleared - 2.0 <= 0.13
    assert len(wire.frames) - wire.frames_at_clear[0] <= 1


@virtual_time
async def test_the_sink_is_cleared_though_the_producer_has_long_finished() -> None:
    """Synthesis was over before the interruption, its audio was not."""
    wire = FakeWire(10)
    wire.speak(1.0, "stop stop stop please.")
    voice = FakeVoice()
    await place(wire, ScriptedConversation(_long, says("")), voice=voice)
    assert voice.open == 0
    assert wire.clears
    assert wire.audible(1.2) == 0.0


@virtual_time
async def test_one_interruption_ends_all_that_was_queued() -> None:
    wire = FakeWire(10)
    wire.speak(1.0, "stop stop stop please.")

    async def three(speaker: Speaker) -> None:
        for _ in range(3):
            speaker.say("A message of some length that was queued.")

    await place(wire, ScriptedConversation(three, says("")))
    assert wire.audible(1.3) == 0.0
