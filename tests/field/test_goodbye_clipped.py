"""The goodbye is clipped by an early hang-up, or the line stays open after it.

Right: the goodbye plays to its last sample at the far end, then the wire's own hang-up is sent; until then an
utterance of the caller keeps the call.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time

GOODBYE = "Thank you for calling. Goodbye and have a nice day."
SECONDS = len(GOODBYE) * 0.06


async def _bye(speaker: Speaker) -> None:
    speaker.say(GOODBYE)
    speaker.hang_up("done")


@virtual_time
@pytest.mark.parametrize("far_end_s", [0.0, 1.5])
@pytest.mark.parametrize("reports_position", [False, True])
async def test_every_frame_of_the_goodbye_is_played_before_the_hang_up(
    far_end_s: float, reports_position: bool
) -> None:
    """With a far end that is late by 1.5 s."""
    wire = FakeWire(30, drain_s=far_end_s, reports_position=reports_position)
    talk = ScriptedConversation(_bye)
    outcome = await place(wire, talk)
    assert talk.heard() == [GOODBYE]
    assert wire.audible() == pytest.approx(SECONDS, abs=0.041)
    assert wire.clears == []
    assert wire.hung_up == ["done"]
    assert outcome.seconds >= SECONDS + far_end_s - 0.05
    assert (outcome.outcome, outcome.reason) == ("completed", "done")


@virtual_time
async def test_a_far_end_that_never_drains_is_hung_up_on_in_time() -> None:
    wire = FakeWire(60, stuck=True)
    talk = ScriptedConversation(_bye)
    from tests.support.calls import make_call
    from voice_agent.call.clock import MediaClock

    options = OPTIONS.model_copy(update={"drain_timeout_s": 2.0})
    async with MediaClock() as clock:
        outcome = await make_call(wire, talk, clock, options=options).run()
    assert wire.hung_up == ["done"]
    assert outcome.seconds <= SECONDS + 2.0 + 3.0


@virtual_time
@pytest.mark.parametrize("at", [0.3, SECONDS - 0.8, SECONDS - 0.1, SECONDS + 0.3, SECONDS + 0.8])
async def test_an_utterance_during_the_goodbye_keeps_the_call(at: float) -> None:
    wire = FakeWire(20, drain_s=1.0)
    wire.speak(at, "wait one more question please.")
    talk = ScriptedConversation(_bye, says("Of course."))
    outcome = await place(wire, talk)
    assert talk.of("turn")[1] == "wait one more question please."
    assert talk.heard()[1] == "Of course."
    assert wire.hung_up[0] != "done"
    assert outcome.reason == "caller_hang_up"


@virtual_time
@pytest.mark.parametrize("at", [0.5, SECONDS + 0.3, SECONDS + 0.8])
async def test_a_cough_during_the_goodbye_does_not(at: float) -> None:
    wire = FakeWire(20, drain_s=1.0)
    wire.noise(at, 0.15)
    talk = ScriptedConversation(_bye)
    await place(wire, talk)
    assert wire.hung_up == ["done"]
    assert talk.heard() == [GOODBYE]


@virtual_time
async def test_a_goodbye_may_be_made_uninterruptible() -> None:
    wire = FakeWire(20)
    wire.speak(0.5, "wait one more question please.")
    talk = ScriptedConversation(_bye, says("Of course."))
    await place(wire, talk, options=OPTIONS.model_copy(update={"interruptible_goodbye": False}))
    assert talk.heard() == [GOODBYE]
    assert wire.hung_up == ["done"]


@virtual_time
async def test_a_hang_up_without_a_word_ends_the_call_as_well() -> None:
    async def leave(speaker: Speaker) -> None:
        speaker.hang_up("silent")

    wire = FakeWire(20)
    await place(wire, ScriptedConversation(leave))
    assert wire.hung_up == ["silent"]
