"""From the dialogue's words to frames: sentences as they come, messages in order, bounds."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import SECONDS_PER_CHARACTER, FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.mouth import MAX_AHEAD_S
from voice_agent.call.reply_text import MAX_REPLY_CHARACTERS
from voice_agent.call.wire import MarkMessage, TranscriptMessage
from voice_agent.dialogue.reply import Say
from voice_agent.speech.protocols import Speech

STORY = "Once upon a time there was a king. He had three daughters. They all lived in a castle far away. "


@virtual_time
async def test_a_streamed_reply_is_spoken_while_it_still_streams() -> None:
    wire = FakeWire(20)

    async def reply(speaker: Speaker) -> None:
        await speaker.stream(STORY * 2, seconds_per_word=0.2)

    talk = ScriptedConversation(reply)
    await place(wire, talk)
    assert wire.frames[0][0] < 2.5
    assert talk.heard() == [STORY * 2]


@virtual_time
async def test_the_client_sees_a_reply_grow_and_then_whole_and_then_as_heard() -> None:
    wire = FakeWire(12)

    async def reply(speaker: Speaker) -> None:
        await speaker.stream(STORY.strip(), seconds_per_word=0.05)

    await place(wire, ScriptedConversation(reply))
    seen = [m for _, m in wire.messages if isinstance(m, TranscriptMessage)]
    growing = [m.text for m in seen if not m.final]
    assert growing and all(STORY.startswith(text) for text in growing)
    assert growing == sorted(growing, key=len)
    assert [(m.text.strip(), m.heard) for m in seen if m.final] == [
        (STORY.strip(), None),
        (STORY.strip(), STORY.strip()),
    ]


@virtual_time
async def test_a_mark_follows_the_last_frame_of_a_reply() -> None:
    wire = FakeWire(3)
    await place(wire, ScriptedConversation(says("Hello.")))
    (mark,) = [(t, m) for t, m in wire.messages if isinstance(m, MarkMessage)]
    assert mark[0] >= wire.frames[-1][0]


@virtual_time
async def test_messages_keep_their_order_and_stay_apart() -> None:
    wire = FakeWire(12)

    async def three(speaker: Speaker) -> None:
        speaker.say("First.")
        await speaker.stream("Second one is streamed.")
        speaker.say("Third.")

    talk = ScriptedConversation(three)
    await place(wire, talk)
    assert talk.heard() == ["First. Second one is streamed. Third."]
    assert wire.transcripts("agent") == ["First.", "Second one is streamed.", "Third."]


@virtual_time
async def test_a_message_that_was_not_ended_is_spoken_all_the_same() -> None:
    async def open_end(speaker: Speaker) -> None:
        speaker.sink.emit(Say(0, "No end was "))
        speaker.sink.emit(Say(0, "announced"))

    talk = ScriptedConversation(open_end)
    await place(FakeWire(4), talk)
    assert talk.heard() == ["No end was announced"]


@virtual_time
async def test_synthesis_runs_ahead_of_playout_only_so_far() -> None:
    wire, voice = FakeWire(6), FakeVoice()

    async def endless(speaker: Speaker) -> None:
        for _ in range(50):
            speaker.say(STORY)

    await place(wire, ScriptedConversation(endless), voice=voice)
    synthesised = len("".join(voice.pieces)) * 0.06
    assert synthesised <= 6 + MAX_AHEAD_S + len(STORY) * 0.06


@virtual_time
async def test_a_reply_without_end_is_cut_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def flood(speaker: Speaker) -> None:
        for _ in range(1000):
            speaker.sink.emit(Say(0, STORY))

    wire = FakeWire(3)
    talk = ScriptedConversation(flood)
    with caplog.at_level(logging.WARNING):
        await place(wire, talk)
    reply = talk.replies[0][1]
    assert len(reply.heard + reply.unheard) <= MAX_REPLY_CHARACTERS
    assert "was cut" in caplog.text


@virtual_time
async def test_a_reply_that_comes_in_one_piece_beyond_all_measure_is_cut_and_not_lost() -> None:
    talk = ScriptedConversation(says("Yes. No. " * 3000))
    await place(FakeWire(3), talk)
    reply = talk.replies[0][1]
    assert len(reply.heard + reply.unheard) == MAX_REPLY_CHARACTERS
    assert reply.heard.startswith("Yes. No.")


@virtual_time
async def test_many_sentences_in_one_delta_are_shown_at_once() -> None:
    async def reply(speaker: Speaker) -> None:
        speaker.sink.emit(Say(0, "Yes. No. " * 2000))

    wire = FakeWire(3)
    await place(wire, ScriptedConversation(reply))
    assert len([m for _, m in wire.messages if isinstance(m, TranscriptMessage)]) <= 3


@virtual_time
async def test_a_reply_that_no_engine_can_speak_costs_one_apology_and_not_one_for_each_sentence() -> None:
    sentences = ["The first one.", "The second one.", "The third one."]
    wire = FakeWire(8)

    async def reply(speaker: Speaker) -> None:
        for number, sentence in enumerate(sentences):
            speaker.sink.emit(Say(number, sentence, end=True))

    talk = ScriptedConversation(reply)
    await place(wire, talk, voice=FakeVoice(fail_pieces=(0, 1, 2)))
    assert len(wire.frames) == round(len(sentences[0]) * SECONDS_PER_CHARACTER / 0.02)
    assert talk.replies[0][1].heard == ""
    assert [m.text for _, m in wire.messages if isinstance(m, TranscriptMessage) and m.heard is None] == sentences


@virtual_time
async def test_what_a_turn_says_after_its_end_is_dropped() -> None:
    sinks = []

    async def keeper(speaker: Speaker) -> None:
        sinks.append(speaker.sink)
        speaker.say("Hello.")

    wire = FakeWire(5)
    wire.at(2.0, lambda call: sinks[0].emit(Say(7, "A voice from the past.", end=True, source="response")))
    talk = ScriptedConversation(keeper)
    await place(wire, talk)
    assert wire.audible() == pytest.approx(len("Hello.") * 0.06, abs=0.021)
    assert wire.transcripts("agent") == ["Hello."]
    sinks.clear()


@virtual_time
async def test_a_long_piece_does_not_starve_the_one_after_it() -> None:
    wire = FakeWire(25)
    long = "word " * 40 + "end. "
    talk = ScriptedConversation(says(long + "And a short one."))
    await place(wire, talk, voice=FakeVoice(piece_s=1.0))
    gaps = [b - a for (a, _), (b, _) in zip(wire.frames, wire.frames[1:], strict=False)]
    assert max(gaps) <= 0.021
    assert talk.replies[0][1].unheard == ""


class _Watched(FakeVoice):
    """Remembers which texts somebody waited for in silence."""

    def __init__(self) -> None:
        super().__init__(first_byte_s=0.2)
        self.first: list[str] = []

    def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        if first:
            self.first.append(text)
        return super().speak(text, canned=canned, first=first)


@virtual_time
async def test_only_the_first_piece_of_a_reply_is_urgent() -> None:
    voice = _Watched()

    async def three(speaker: Speaker) -> None:
        for text in ("One. ", "Two. ", "Three. "):
            speaker.say(text)

    await place(FakeWire(5), ScriptedConversation(three), voice=voice)
    assert voice.first == ["One. "]
    assert voice.spoken == ["One. ", "Two. ", "Three. "]
