"""A filler is cut off by the reply that it announced, or fillers are all that the caller hears.

Right: one short phrase a turn, heard to its end; the reply begins right after it, whenever it came.
"""

from __future__ import annotations

import itertools

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import run_virtual

FILLER = "One moment, please."
LENGTH_S = len(FILLER) * 0.06


@pytest.mark.parametrize("reply_after_s", [0.85, 0.95, 1.0, 1.5, 2.5, 30])
def test_whenever_the_reply_comes_the_filler_is_whole_and_alone(reply_after_s: float) -> None:
    async def slow(speaker: Speaker) -> None:
        await speaker.wait(reply_after_s)
        speaker.say("Fifty dollars.")

    async def call() -> tuple[FakeWire, ScriptedConversation]:
        wire = FakeWire(45)
        wire.speak(2.0, "what is my balance?")
        talk = ScriptedConversation(says("Hello."), slow, lines={"utter_filler": FILLER})
        await place(wire, talk, voice=FakeVoice(cached=(FILLER,)))
        return wire, talk

    wire, talk = run_virtual(call())
    assert talk.heard() == ["Hello.", "Fifty dollars."]
    assert talk.of("note") == (["filler"] if reply_after_s > 0.9 else [])
    assert not wire.clears
    spoken = [at for at, _ in wire.frames if at > 2.0]
    filler_s = LENGTH_S if reply_after_s > 0.9 else 0.0
    assert len(spoken) * 0.02 == pytest.approx(filler_s + len("Fifty dollars.") * 0.06, abs=0.05)
    gaps = [later - before for before, later in itertools.pairwise(spoken) if later - before > 0.05]
    silent_s = max(0.0, reply_after_s - 0.9 - LENGTH_S) if reply_after_s > 0.9 else 0.0
    assert sum(gaps) == pytest.approx(silent_s, abs=0.05)
