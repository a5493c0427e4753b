"""What callers said over a greeting that must be heard whole was queued, and answered at an odd moment or never.

The rule here: it is kept, and answered as one utterance when the greeting has been heard; or, where the wording says
so, it is discarded: neither answered nor recorded.
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
@pytest.mark.parametrize("at", [0.3, 1.5, 2.8])
async def test_words_over_a_greeting_that_discards_them_come_to_nothing(at: float) -> None:
    wire = FakeWire(12)
    wire.speak(at, "I want to pay.")
    greeting = says(GREETING, interruptible=False, while_uninterruptible="discard")
    talk = ScriptedConversation(greeting, says("Of course."))
    await place(wire, talk)
    assert talk.heard() == [GREETING]
    assert talk.of("turn") == ["/session_start"]
    assert talk.of("note") == ["utterance_discarded"]
    assert not wire.clears and not wire.transcripts("user")


@virtual_time
async def test_who_is_still_speaking_when_such_a_greeting_ends_is_answered() -> None:
    wire = FakeWire(14)
    wire.speak(3.5, "I want to pay my bill of last month please.")
    greeting = says(GREETING, interruptible=False, while_uninterruptible="discard")
    talk = ScriptedConversation(greeting, says("Of course."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "I want to pay my bill of last month please."]
    assert talk.heard()[-1] == "Of course."


@virtual_time
async def test_a_greeting_that_may_be_interrupted_is() -> None:
    wire = FakeWire(16)
    wire.speak(1.5, "I want to pay.")
    talk = ScriptedConversation(says(GREETING), says("Of course."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "I want to pay."]
    assert talk.heard()[0] != GREETING
    assert talk.heard()[1] == "Of course."
