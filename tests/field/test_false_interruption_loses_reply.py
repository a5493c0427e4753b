"""A cough, a "mm-hm" or a door slam, and the reply is lost, cut or never resumed.

Right: voice alone pauses, words decide; a false interruption resumes from the cut word, before the first frame it
replays the whole.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire, ScriptedEars
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time

GREETING = "Hello, this is the front desk. How can I help you today?"


@virtual_time
@pytest.mark.parametrize("guard_s", [0, 3])
async def test_a_noise_before_the_first_frame_does_not_lose_the_greeting(guard_s: float) -> None:
    """Noise at 50 ms, the first audio would come at 300 ms."""
    wire = FakeWire(8)
    wire.noise(0.05, 0.12)
    talk = ScriptedConversation(says(GREETING))
    options = OPTIONS.model_copy(update={"greeting_guard_s": guard_s})
    await place(wire, talk, voice=FakeVoice(first_byte_s=0.3), options=options)
    assert talk.heard() == [GREETING]
    assert wire.audible() == pytest.approx(len(GREETING) * 0.06, abs=0.05)


@virtual_time
async def test_a_cough_while_the_agent_thinks_does_not_lose_the_reply() -> None:
    """The reply is held while the cough lasts, then spoken whole."""
    wire = FakeWire(12)
    end = wire.speak(2.0, "what is my balance?")
    wire.noise(end + 0.9, 0.14)

    async def slow(speaker: Speaker) -> None:
        await speaker.wait(0.5)
        speaker.say("Your balance is fifty dollars.")

    talk = ScriptedConversation(says("Hello."), slow)
    await place(wire, talk)
    assert talk.heard() == ["Hello.", "Your balance is fifty dollars."]
    assert talk.of("turn") == ["/session_start", "what is my balance?"]
    assert [s.value for s in talk.statuses] == ["completed"] * 2


@virtual_time
async def test_speech_goes_on_from_the_cut_word_after_a_noise() -> None:
    """Speech stops and never resumes."""
    wire = FakeWire(12)
    wire.noise(1.0, 0.15)
    talk = ScriptedConversation(says(GREETING))
    await place(wire, talk)
    assert talk.heard() == [GREETING]
    gap = max(b - a for (a, _), (b, _) in zip(wire.frames, wire.frames[1:], strict=False))
    assert 0.4 <= gap <= 0.75
    # A word is repeated at most, nothing is left out.
    assert len(GREETING) * 0.06 <= wire.audible() <= len(GREETING) * 0.06 + 0.5


@virtual_time
@pytest.mark.parametrize("words", ["mm hm", "yeah", "okay", "right"])
async def test_a_backchannel_changes_nothing_but_is_noted(words: str) -> None:
    wire = FakeWire(12)
    wire.speak(1.0, words, seconds=0.36)
    talk = ScriptedConversation(says(GREETING))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start"]
    assert talk.heard() == [GREETING]
    assert talk.of("note") == ["backchannel"]


@virtual_time
async def test_a_long_hum_of_agreement_is_judged_by_its_word_and_not_by_its_length() -> None:
    wire = FakeWire(12)
    wire.speak(1.0, "mm-hmm", seconds=0.64)
    talk = ScriptedConversation(says(GREETING))
    await place(wire, talk)
    assert talk.heard() == [GREETING]
    assert talk.of("turn") == ["/session_start"]


@virtual_time
@pytest.mark.parametrize(("words", "seconds"), [("mm-hm", 0.44), ("yeah", 0.26), ("okay", 0.4), ("uh-huh", 0.3)])
async def test_a_backchannel_silences_the_agent_for_less_than_four_tenths(words: str, seconds: float) -> None:
    wire = FakeWire(12)
    wire.speak(1.0, words, seconds=seconds)
    talk = ScriptedConversation(says(GREETING))
    await place(wire, talk, recognizer=ScriptedEars(wire, 0.15))
    gap = max(b - a for (a, _), (b, _) in zip(wire.frames, wire.frames[1:], strict=False))
    assert gap <= 0.4
    assert talk.of("note") == ["backchannel"]


@virtual_time
async def test_words_of_weight_after_a_backchannel_take_the_floor_all_the_same() -> None:
    wire = FakeWire(12)
    wire.speak(1.0, "yeah but I wanted Tuesday")
    talk = ScriptedConversation(says(GREETING), says("Tuesday then."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "yeah but I wanted Tuesday"]
    assert talk.replies[0][1].unheard
    assert wire.audible(wire.began + 2.2, wire.began + 2.5) == 0.0


@virtual_time
async def test_four_backchannels_over_one_reply_cost_four_pauses_and_no_word() -> None:
    wire = FakeWire(30)
    text = "This is a reply of a good many words, so that there is time. " * 4
    for at in (1.0, 4.0, 7.0, 10.0):
        wire.speak(at, "mm hm", seconds=0.3)
    talk = ScriptedConversation(says(text))
    await place(wire, talk)
    assert talk.heard() == [text]
    assert len(wire.clears) == 4


@virtual_time
async def test_okay_is_an_answer_when_the_agent_is_silent() -> None:
    wire = FakeWire(12)
    wire.speak(3.0, "okay", seconds=0.4)
    talk = ScriptedConversation(says("Shall I go on?"), says("Good."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "okay"]


@virtual_time
async def test_yes_into_the_last_word_of_a_question_is_its_answer() -> None:
    wire = FakeWire(12)
    question = "Shall I pay the bill now?"
    wire.speak(len(question) * 0.06 - 0.35, "yes", seconds=0.4)
    talk = ScriptedConversation(says(question), says("Paid."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "yes"]


@virtual_time
async def test_mere_voice_does_not_interrupt_the_start_of_the_greeting_but_words_do() -> None:
    options = OPTIONS.model_copy(update={"greeting_guard_s": 3.0})
    wire = FakeWire(8)
    wire.noise(1.0, 1.0)
    talk = ScriptedConversation(says(GREETING))
    await place(wire, talk, options=options)
    assert talk.heard() == [GREETING] and not wire.clears

    wire = FakeWire(8)
    wire.speak(1.0, "I need help with my bill.")
    talk = ScriptedConversation(says(GREETING), says("Sure."))
    await place(wire, talk, options=options)
    assert wire.clears and wire.clears[0] - wire.began < 2.2
    assert talk.of("turn")[1] == "I need help with my bill."
