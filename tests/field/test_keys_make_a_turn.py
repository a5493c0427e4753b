"""Digits are gathered, but no turn ends; the agent ignores the keypad until the caller speaks.

Right: "#" or a pause closes the entry, which is one turn with its source; keys interrupt speech
and need no voice.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.reply import InputKind


def _dial(wire: FakeWire, at: float, keys: str) -> None:
    for index, key in enumerate(keys):
        wire.at(at + 0.2 * index, lambda call, key=key: call.press_key(key))


@virtual_time
async def test_a_number_closed_by_the_hash_is_one_turn() -> None:
    wire = FakeWire(6)
    _dial(wire, 1.0, "1234#")
    talk = ScriptedConversation(says("Hi."), says("Thank you."))
    await place(wire, talk)
    assert [(i.text, i.kind) for i in talk.inputs[1:]] == [("1234", InputKind.DTMF)]
    assert next(t for t, _ in wire.frames if t > 1.5) == pytest.approx(1.8, abs=0.05)


@virtual_time
async def test_a_number_without_the_hash_is_closed_by_a_pause() -> None:
    wire = FakeWire(8)
    _dial(wire, 1.0, "42")
    talk = ScriptedConversation(says("Hi."), says("Thank you."))
    await place(wire, talk)
    assert talk.of("turn")[1:] == ["42"]
    assert next(t for t, _ in wire.frames if t > 1.5) == pytest.approx(1.2 + 3.0, abs=0.3)


@virtual_time
async def test_the_first_key_silences_the_agent() -> None:
    wire = FakeWire(8)
    _dial(wire, 1.0, "7#")
    talk = ScriptedConversation(says("Press one for this, two for that, three for something else."), says("Seven."))
    await place(wire, talk)
    assert wire.clears[0] == pytest.approx(1.0, abs=0.021)
    assert talk.replies[0][1].unheard
    assert talk.heard()[1] == "Seven."


@virtual_time
async def test_keys_that_are_none_do_nothing() -> None:
    wire = FakeWire(6)
    for key in ("", "Z", "##", "é"):
        wire.at(1.0, lambda call, key=key: call.press_key(key))
    talk = ScriptedConversation(says("A greeting that is not interrupted."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start"] and wire.clears == []
