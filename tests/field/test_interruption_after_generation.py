"""An interruption does nothing once text and audio are generated, though seconds of speech are still to be played.

Right: "speaking" means played, not generated. Here everything is generated at once, ten seconds
of audio; the caller interrupts after one second; playout stops, the far end is cleared, one second was heard.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time

TEN_SECONDS = " ".join(f"word{i:02d}" for i in range(24)) + "."


@virtual_time
@pytest.mark.parametrize("reports_position", [False, True])
async def test_a_finished_reply_can_be_interrupted_while_it_plays(reports_position: bool) -> None:
    wire = FakeWire(14, reports_position=reports_position)
    wire.speak(1.0, "stop stop stop please.")
    talk = ScriptedConversation(says(TEN_SECONDS), says(""))
    await place(wire, talk)
    assert wire.clears and wire.clears[0] == pytest.approx(1.1, abs=0.05)
    heard_words = len(talk.heard()[0].split())
    assert heard_words == pytest.approx(1.1 / (len("word00 ") * 0.06), abs=1)
    assert wire.audible(1.2) == 0.0


@virtual_time
async def test_the_turn_lives_until_its_last_sample_was_played() -> None:
    wire = FakeWire(20)
    wire.speak(9.2, "stop stop stop please.")
    talk = ScriptedConversation(says(TEN_SECONDS), says(""))
    await place(wire, talk)
    assert wire.clears, "nine seconds after everything was generated, the turn can still be interrupted"
    assert talk.replies[0][1].unheard
