"""A whole call against scripted engines, in virtual time."""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time

GREETING = "Hello, how can I help?"


@virtual_time
async def test_a_caller_is_greeted_asks_and_is_answered() -> None:
    wire = FakeWire(10, leave="hang_up")
    end = wire.speak(3.0, "what is my balance?")
    talk = ScriptedConversation(says(GREETING), says("Fifty dollars."))
    outcome = await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "what is my balance?"]
    assert talk.heard() == [GREETING, "Fifty dollars."]
    assert wire.transcripts("user") == ["what is my balance?"]
    assert wire.transcripts("agent") == [GREETING, "Fifty dollars."]
    first_answer = next(t for t, _ in wire.frames if t > end)
    assert first_answer - end < 0.6
    assert (outcome.outcome, outcome.reason, outcome.turns) == ("disconnected", "caller_hang_up", 2)


@virtual_time
async def test_a_cached_greeting_leaves_at_once() -> None:
    wire = FakeWire(3)
    await place(wire, ScriptedConversation(says(GREETING)), voice=FakeVoice(first_byte_s=1.0, cached=[GREETING]))
    assert wire.frames[0][0] - wire.began <= 0.02


@virtual_time
async def test_a_barge_in_stops_the_agent_and_is_answered() -> None:
    wire = FakeWire(15)
    wire.speak(3.0, "tell me everything.")
    wire.speak(6.0, "what about tomorrow?")

    async def long(speaker: Speaker) -> None:
        await speaker.stream("We are open from nine to five on all days of the week. " * 4)

    talk = ScriptedConversation(says(GREETING), long, says("Closed."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "tell me everything.", "what about tomorrow?"]
    assert wire.last_frame_before(7.0) - 6.0 <= 0.15
    heard = talk.heard()[1]
    assert heard and "We are open from nine to five on all days".startswith(heard[:40])
    order = [name for name, _ in talk.log if name in ("turn", "commit")]
    assert order == ["turn", "commit"] * 3
    timeline = wire.timelines()[1].timeline
    assert timeline["barge_in_onset"] == pytest.approx(6.0, abs=0.041)
    assert timeline["cancel"] is not None and timeline["cancel"] <= 6.8


@virtual_time
async def test_the_agent_hangs_up_after_its_goodbye_was_played() -> None:
    wire = FakeWire(60)

    async def bye(speaker: Speaker) -> None:
        speaker.say("Goodbye and thank you.")
        speaker.hang_up("done")

    talk = ScriptedConversation(bye)
    outcome = await place(wire, talk)
    assert talk.heard() == ["Goodbye and thank you."]
    assert wire.hung_up == ["done"]
    assert wire.audible() == pytest.approx(len("Goodbye and thank you.") * 0.06, abs=0.021)
    assert (outcome.outcome, outcome.reason) == ("completed", "done")
