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
    """Field report 82: a reply of twelve seconds, a silence of four."""
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
    """Field report 83: prompt, prompt, goodbye."""
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
    """Field report 115: silence is a valid state."""
    wire = FakeWire(60)
    talk = ScriptedConversation(says("Hello."), silence=says(""))
    await place(wire, talk, options=OPTIONS)
    assert 10 <= _silences(talk) <= 15
