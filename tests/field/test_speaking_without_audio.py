"""The state says "speaking", but no audio flows, for ever.

Right: a watchdog fails the turn and the call recovers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice, fake_speech
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.watchdog import STALLED_VOICE_S
from voice_agent.speech.protocols import EngineError, Speech


class _Hanging:
    """Speaks until it meets the word "hang"."""

    def cached(self, text: str) -> Speech | None:
        return None

    async def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        if "hang" in text:
            await asyncio.sleep(10_000)
        if "break" in text:
            raise EngineError("the voice is gone")
        yield fake_speech(text)


@virtual_time
async def test_a_voice_that_hangs_fails_its_turn_and_not_the_call() -> None:
    wire = FakeWire(40)
    wire.speak(2.0, "say something please.")
    wire.speak(20.0, "are you still there?")

    async def hanging(speaker: Speaker) -> None:
        speaker.say("This is audible. ")
        speaker.say("This will hang.")

    talk = ScriptedConversation(says("Hello."), hanging, says("Yes I am."))
    await place(wire, talk, voice=_Hanging())
    assert talk.heard()[1].strip() == "This is audible."
    assert talk.heard()[2] == "Yes I am."
    cancelled = wire.timelines()[1].timeline["cancel"]
    assert cancelled is not None and cancelled - 3.0 <= STALLED_VOICE_S + 2.0


@virtual_time
async def test_a_sentence_the_voice_cannot_say_reaches_the_client_and_is_not_recorded_as_heard() -> None:
    wire = FakeWire(8)

    async def broken(speaker: Speaker) -> None:
        speaker.say("One is fine.")
        speaker.say("Two will break.")
        speaker.say("Three is fine.")

    talk = ScriptedConversation(broken)
    await place(wire, talk, voice=_Hanging())
    reply = talk.replies[0][1]
    assert reply.heard.split() == ["One", "is", "fine.", "Three", "is", "fine."]
    assert reply.unheard.strip() == "Two will break."
    assert "Two will break." in wire.transcripts("agent")


@virtual_time
async def test_fallback_audio_is_played_and_its_text_is_not_recorded_as_heard() -> None:
    wire = FakeWire(8)
    talk = ScriptedConversation(says("One is fine. Two is not. "))
    await place(wire, talk, voice=FakeVoice(fail_pieces=[1]))
    assert wire.audible() == pytest.approx(len("One is fine. Two is not. ") * 0.06, abs=0.05)
    assert talk.replies[0][1].heard.strip() == "One is fine."
    assert wire.transcripts("agent") == ["One is fine. Two is not. "]


@virtual_time
async def test_a_goodbye_that_cannot_be_spoken_still_ends_the_call() -> None:
    async def bye(speaker: Speaker) -> None:
        speaker.say("This will hang.")
        speaker.hang_up("done")

    wire = FakeWire(60)
    outcome = await place(wire, ScriptedConversation(bye), voice=_Hanging())
    assert (outcome.reason, wire.hung_up) == ("done", ["done"])
    assert outcome.seconds <= STALLED_VOICE_S + 1.0


@virtual_time
async def test_a_breath_between_two_long_sentences_is_no_stall() -> None:
    first, second = "word " * 45 + "end.", "And a second sentence."

    async def slow(speaker: Speaker) -> None:
        speaker.say(first)
        await speaker.wait(len(first) * 0.06 + 0.5)
        speaker.say(second)

    wire = FakeWire(22)
    talk = ScriptedConversation(slow)
    await place(wire, talk, voice=FakeVoice(first_byte_s=2.0))
    assert len(first) * 0.06 > STALLED_VOICE_S
    assert talk.heard() == [f"{first} {second}"]
