"""The stale tail is flushed on an interruption, and a short last packet is lost on a normal end.

Right: flush at the end, discard on a cancel; two paths, both tested.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time

# 15 ms a character: 31 characters end 5 ms into a frame.
TEXT = "Thirty one characters are here."


@virtual_time
async def test_the_last_milliseconds_are_heard_at_a_normal_end() -> None:
    wire = FakeWire(3)
    talk = ScriptedConversation(says(TEXT))
    await place(wire, talk, voice=FakeVoice(seconds_per_character=0.015))
    assert len(wire.frames) == pytest.approx(len(TEXT) * 0.015 / 0.02 + 0.5, abs=0.5)
    assert talk.replies[0][1].unheard == ""


@virtual_time
async def test_the_rest_is_dropped_on_a_cancel() -> None:
    wire = FakeWire(3)
    wire.at(0.2, lambda call: call.type_text("stop"))
    talk = ScriptedConversation(says(TEXT), says(""))
    await place(wire, talk, voice=FakeVoice(seconds_per_character=0.015))
    assert wire.audible(0.23) == 0.0
    assert talk.replies[0][1].unheard
