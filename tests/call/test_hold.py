"""A caller who puts the call on hold: silence, no questions, and the sentence goes on afterwards.

::

    agent   ▇▇▇▇▇│                  │▇▇▇▇▇▇▇▇     from the start of the cut word
    line         └ on hold     off ─┘
"""

from __future__ import annotations

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.config import TurnTaking

OPTIONS = TurnTaking(silence_timeout_s=4, greeting_guard_s=0, media_timeout_s=9)
LONG = "word " * 20
"""Six seconds."""


def sounding(wire: FakeWire, since: float, until: float) -> int:
    return len([at for at, frame in wire.frames if since <= at - wire.began < until and any(frame)])


@virtual_time
async def test_the_agent_falls_silent_on_hold_and_goes_on_afterwards() -> None:
    wire = FakeWire(50)
    wire.at(2.0, lambda call: call.hold(True))
    wire.at(30.0, lambda call: call.hold(False))
    talk = ScriptedConversation(says(LONG))
    await place(wire, talk, options=OPTIONS)
    assert sounding(wire, 0, 2.0) > 50
    assert sounding(wire, 2.15, 30.0) == 0
    assert sounding(wire, 30.0, 34.0) > 150
    assert talk.heard()[0].split() == LONG.split(), "all of it was heard"
    assert talk.of("turn").count("/silence") >= 1, "silence counts again after it"


@virtual_time
async def test_nobody_is_asked_whether_they_are_there_and_nobody_is_hung_up_on() -> None:
    wire = FakeWire(60, media_until=3)
    wire.at(2.5, lambda call: call.hold(True))
    talk = ScriptedConversation(says("Hi."))
    outcome = await place(wire, talk, options=OPTIONS)
    assert "/silence" not in talk.of("turn")
    assert outcome.reason == "caller_hang_up"


@virtual_time
async def test_an_answer_that_is_ready_while_on_hold_is_said_afterwards() -> None:
    wire = FakeWire(40)
    wire.speak(2.0, "what is my balance")
    wire.at(3.25, lambda call: call.hold(True))
    wire.at(20.0, lambda call: call.hold(False))
    talk = ScriptedConversation(says("Hi."), says("It is twelve dollars."))
    await place(wire, talk, options=OPTIONS)
    assert sounding(wire, 3.4, 20.0) == 0
    assert sounding(wire, 20.0, 23.0) > 30
    assert "It is twelve dollars." in [text.strip() for text in talk.heard()]


@virtual_time
async def test_holding_twice_and_hanging_up_on_hold_are_harmless() -> None:
    wire = FakeWire(6)
    for at in (1.0, 1.5, 2.0):
        wire.at(at, lambda call: call.hold(True))
    talk = ScriptedConversation(says(LONG))
    outcome = await place(wire, talk, options=OPTIONS)
    assert outcome.reason == "caller_hang_up"
    assert 0 < len(talk.heard()[0].split()) < 20, "partly heard"
