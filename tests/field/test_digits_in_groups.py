"""A number said in groups is answered after its first group, and a whole number is answered late.

Right: the question that is open says how many digits there are. Fewer are waited for, the last one ends the turn.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.reply import ExpectedAnswer


def _talk(expected: ExpectedAnswer | None) -> ScriptedConversation:
    talk = ScriptedConversation(says("Your number?"), says("Thank you."))
    talk.expected = expected
    return talk


def _endpoint_s(wire: FakeWire) -> float:
    times = wire.timelines()[-1].timeline
    return times["endpoint"] - times["speech_end"]


@virtual_time
async def test_digits_in_two_groups_are_one_utterance() -> None:
    wire = FakeWire(12)
    end = wire.speak(2.0, "My number is one two three.")
    wire.speak(end + 0.9, "Four five six.")
    talk = _talk(ExpectedAnswer("digits", length=6))
    await place(wire, talk)
    assert talk.of("turn")[1:] == ["My number is one two three. Four five six."]
    assert _endpoint_s(wire) == pytest.approx(0.36, abs=0.07)


@virtual_time
async def test_the_last_digit_ends_the_turn() -> None:
    wire = FakeWire(12)
    wire.speak(2.0, "My number is one two three four five six.")
    await place(wire, _talk(ExpectedAnswer("digits", length=6)))
    assert _endpoint_s(wire) == pytest.approx(0.36, abs=0.07)


@virtual_time
async def test_digits_are_waited_for_when_nobody_knows_how_many_there_are() -> None:
    wire = FakeWire(12)
    wire.speak(2.0, "My number is one two three four five six.")
    await place(wire, _talk(None))
    assert _endpoint_s(wire) == pytest.approx(1.2, abs=0.05)
