"""What a client that asked is told of the floor, and of what has been heard. In virtual time."""

from __future__ import annotations

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.floor import State
from voice_agent.call.status import NAMES
from voice_agent.call.wire import HeardMessage, StateMessage

GREETING = "Hello, how can I help?"
LONG = "We are open from nine to five on all days of the week. " * 4


def states(wire: FakeWire) -> list[str]:
    return [m.state for _, m in wire.messages if isinstance(m, StateMessage)]


def heard(wire: FakeWire) -> list[str]:
    return [m.text for _, m in wire.messages if isinstance(m, HeardMessage)]


def test_every_state_of_the_floor_has_a_name_for_clients() -> None:
    assert set(NAMES) == set(State) - {State.CLOSED}


@virtual_time
async def test_a_client_that_asked_follows_a_call_from_greeting_to_end() -> None:
    wire = FakeWire(10, follows_state=True)
    wire.speak(3.0, "what is my balance?")
    await place(wire, ScriptedConversation(says(GREETING), says("Fifty dollars.")))
    assert states(wire) == [
        *("listening", "thinking", "speaking", "listening"),
        *("hearing", "listening", "thinking", "speaking", "listening"),
    ]


@virtual_time
async def test_what_was_heard_grows_with_the_sound_and_stops_with_it() -> None:
    wire = FakeWire(15, follows_state=True)
    wire.speak(3.0, "tell me everything.")
    wire.speak(6.0, "what about tomorrow?")

    async def long(speaker: Speaker) -> None:
        await speaker.stream(LONG)

    talk = ScriptedConversation(says(GREETING), long, says("Closed."))
    await place(wire, talk)
    of_reply = [text for text in heard(wire) if LONG.startswith(text)]
    assert len(of_reply) > 4
    assert of_reply == sorted(set(of_reply), key=len), "it only ever grows"
    final = talk.heard()[1]
    assert len(of_reply[-1]) <= len(final) < len(LONG)
    assert "paused" in states(wire)
    assert states(wire)[-3:] == ["thinking", "speaking", "listening"]


@virtual_time
async def test_a_client_that_did_not_ask_is_told_neither() -> None:
    wire = FakeWire(6)
    await place(wire, ScriptedConversation(says(GREETING)))
    assert states(wire) == heard(wire) == []
