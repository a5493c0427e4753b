"""What callers said over a greeting that must be heard whole was queued, and answered at an odd moment or never.

The rule here: it is kept, and answered as one utterance when the greeting has been heard. Field report 76.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time

GREETING = "Welcome to the support line, this call may be recorded for training."


@virtual_time
@pytest.mark.parametrize("at", [0.3, 1.5, 3.0])
async def test_words_over_a_protected_greeting_are_answered_after_it_and_once(at: float) -> None:
    wire = FakeWire(16)
    wire.speak(at, "I want to pay.")
    talk = ScriptedConversation(says(GREETING, interruptible=False), says("Of course."))
    await place(wire, talk)
    assert talk.heard() == [GREETING, "Of course."]
    assert talk.of("turn") == ["/session_start", "I want to pay."]


@virtual_time
async def test_a_greeting_that_may_be_interrupted_is() -> None:
    wire = FakeWire(16)
    wire.speak(1.5, "I want to pay.")
    talk = ScriptedConversation(says(GREETING), says("Of course."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "I want to pay."]
    assert talk.heard()[0] != GREETING
    assert talk.heard()[1] == "Of course."
