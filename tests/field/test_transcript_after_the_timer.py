"""The words came a moment after the silence timer had fired: the turn was skipped, or answered seconds later.

Right: a transcript that is late decides at once when it comes, and is answered once.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire, ScriptedEars
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time

ENDPOINT_S = OPTIONS.min_endpoint_ms / 1000


@virtual_time
@pytest.mark.parametrize("seconds", [0.05, ENDPOINT_S - 0.01, ENDPOINT_S + 0.01, 1.21, 3.0])
async def test_words_are_answered_once_and_at_once_however_late_they_come(seconds: float) -> None:
    wire = FakeWire(14)
    end = wire.speak(2.0, "I want to pay my bill.")
    ears = ScriptedEars(wire, seconds)
    began: list[float] = []

    async def answer(speaker: Speaker) -> None:
        began.append(asyncio.get_running_loop().time())
        speaker.say("Of course.")

    talk = ScriptedConversation(says("Hello."), answer)
    await place(wire, talk, recognizer=ears)
    assert talk.of("turn") == ["/session_start", "I want to pay my bill."]
    assert talk.heard() == ["Hello.", "Of course."]
    asked = [at for at, _, _ in ears.requests if at >= end - 0.1]
    ready = max(asked[0] + seconds, end + ENDPOINT_S)
    assert began[0] - ready < 0.35, "nobody waits for another timer once the words are there"
