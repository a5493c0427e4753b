"""What is measured in seconds: the longest call, its warning, its goodbye."""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time

LINES = {"utter_call_ending_soon": "This call ends in a minute.", "utter_hangup_goodbye": "Goodbye."}


@virtual_time
async def test_a_call_that_becomes_too_long_is_warned_and_ends_politely() -> None:
    wire = FakeWire(600)
    talk = ScriptedConversation(says("Hello."), lines=LINES)
    outcome = await place(wire, talk, options=OPTIONS.model_copy(update={"max_call_s": 180}))
    assert wire.transcripts("agent") == ["Hello.", "This call ends in a minute.", "Goodbye."]
    warned = next(t for t, frame in wire.frames if t > 10)
    assert warned == pytest.approx(120, abs=0.5)
    assert (outcome.outcome, outcome.reason) == ("completed", "max_duration")
    assert outcome.seconds == pytest.approx(180 + len("Goodbye.") * 0.06, abs=0.6)


@virtual_time
async def test_a_goodbye_that_cannot_be_spoken_does_not_prolong_the_call() -> None:
    wire = FakeWire(600)
    talk = ScriptedConversation(says(""), lines=LINES)
    options = OPTIONS.model_copy(update={"max_call_s": 100})
    outcome = await place(wire, talk, options=options, voice=FakeVoice(first_byte_s=1000))
    assert outcome.reason == "max_duration"
    assert outcome.seconds <= 100 + 20


@virtual_time
async def test_without_a_limit_a_call_may_last() -> None:
    wire = FakeWire(4000)
    outcome = await place(wire, ScriptedConversation(says("Hi.")), options=OPTIONS.model_copy(update={"max_call_s": 0}))
    assert outcome.reason == "caller_hang_up"
