"""The idle prompt fires while the agent speaks or a tool runs, after the call, or never.

Right: the idle clock runs only when the call listens, nothing is pending and playout is drained; anything the caller
does starts it again; the dialogue's ladder ends in a hang-up.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.config import TurnTaking

OPTIONS = TurnTaking(silence_timeout_s=4, greeting_guard_s=0)


def _silences(talk: ScriptedConversation) -> int:
    return sum(text == "/silence" for text in talk.of("turn"))


@virtual_time
async def test_not_while_the_agent_speaks() -> None:
    """A reply of twelve seconds, a silence of four."""
    wire = FakeWire(12)
    talk = ScriptedConversation(says("word " * 40))
    await place(wire, talk, options=OPTIONS)
    assert _silences(talk) == 0


@virtual_time
async def test_not_while_a_tool_runs() -> None:
    wire = FakeWire(14)
    wire.speak(1.0, "look it up please.")

    async def lookup(speaker: Speaker) -> None:
        await speaker.tool("lookup", 8.0)
        speaker.say("Found.")

    talk = ScriptedConversation(says("Hi."), lookup)
    await place(wire, talk, options=OPTIONS)
    assert _silences(talk) == 0


@virtual_time
async def test_not_while_a_filler_plays_and_the_turn_behind_it_runs() -> None:
    wire = FakeWire(14)
    wire.speak(1.0, "look it up please.")

    async def slow(speaker: Speaker) -> None:
        await speaker.wait(8.0)
        speaker.say("Found.")

    talk = ScriptedConversation(says("Hi."), slow, lines={"utter_filler": "One moment, please, I am looking."})
    await place(wire, talk, options=OPTIONS)
    assert talk.of("note") == ["filler"]
    assert _silences(talk) == 0


@virtual_time
async def test_not_while_the_caller_has_switched_the_microphone_off() -> None:
    wire = FakeWire(30, media_until=3)
    wire.at(2.0, lambda call: call.mute(True))
    wire.at(20.0, lambda call: call.mute(False))
    talk = ScriptedConversation(says("Hi."))
    outcome = await place(wire, talk, options=OPTIONS.model_copy(update={"media_timeout_s": 9}))
    prompt = next(t for t, message in wire.messages if getattr(message, "text", "") == "Are you there?")
    assert prompt == pytest.approx(24, abs=0.6), "silence counts again once the microphone is on"
    assert outcome.reason == "media_timeout", "so does a wire that carries nothing"


@virtual_time
@pytest.mark.parametrize("at", [4.1, 4.3, 4.5, 4.6, 4.7, 4.75, 4.8, 4.9, 5.1])
async def test_words_that_come_as_the_silence_runs_out_are_answered_once(at: float) -> None:
    wire = FakeWire(10)
    wire.speak(at, "yes.", seconds=0.4)
    talk = ScriptedConversation(says("Hello."), says("Good."))
    await place(wire, talk, options=OPTIONS)
    assert talk.of("turn").count("yes.") == 1
    assert talk.heard().count("Good.") == 1
    assert _silences(talk) <= 2


@virtual_time
async def test_not_while_the_caller_speaks_or_keys_are_coming() -> None:
    wire = FakeWire(10.5)
    wire.speak(1.0, "and " * 20 + "so on.", seconds=6.0)
    for at in (8.0, 9.0, 10.0):
        wire.at(at, lambda call: call.press_key("1"))
    talk = ScriptedConversation(says("Hi."), says(""))
    await place(wire, talk, options=OPTIONS)
    assert _silences(talk) == 0


@virtual_time
async def test_it_counts_from_the_moment_the_reply_was_heard() -> None:
    wire = FakeWire(9)
    talk = ScriptedConversation(says("A greeting."))
    await place(wire, talk, options=OPTIONS)
    prompt = next(t for t, frame in wire.frames if t > 1.0)
    assert prompt - len("A greeting.") * 0.06 == pytest.approx(4.0, abs=0.55)


@virtual_time
async def test_both_sides_silent_ends_in_a_hang_up() -> None:
    """Prompt, prompt, goodbye."""
    count = 0

    async def ladder(speaker: Speaker) -> None:
        nonlocal count
        count += 1
        if count < 3:
            speaker.say("Are you still there?")
        else:
            speaker.say("Goodbye then.")
            speaker.hang_up("silence")

    wire = FakeWire(60)
    talk = ScriptedConversation(says("Hello."), silence=ladder)
    outcome = await place(wire, talk, options=OPTIONS)
    assert (count, outcome.reason) == (3, "silence")
    assert talk.heard()[-1] == "Goodbye then."


@virtual_time
async def test_a_caller_who_is_muted_from_the_start_is_no_error() -> None:
    """Silence is a valid state."""
    wire = FakeWire(60)
    talk = ScriptedConversation(says("Hello."), silence=says(""))
    await place(wire, talk, options=OPTIONS)
    assert 10 <= _silences(talk) <= 15
