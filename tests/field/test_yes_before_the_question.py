"""A caller who said "yes, please" over the terms had agreed to a booking that nobody had asked them about yet.

The rule here: words over wording that must be heard whole are answered after it, and told from an answer to what the
reply asks at its end.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time

TERMS = "Tables are kept for fifteen minutes and no longer than that."
QUESTION = "A table for four on Saturday at seven. Shall I book it?"
TERMS_S = len(TERMS) * 0.06


@virtual_time
@pytest.mark.parametrize(
    ("at", "early"), [(0.5, True), (TERMS_S - 0.4, True), (TERMS_S + 0.4, False), (TERMS_S + 1.5, False)]
)
async def test_a_yes_is_known_to_have_come_before_or_after_the_question_began(at: float, early: bool) -> None:
    wire = FakeWire(16)
    wire.speak(at, "yes please do.")
    heard_as: list[bool] = []

    async def terms(speaker: Speaker) -> None:
        speaker.say(TERMS, interruptible=False)
        speaker.say(QUESTION, interruptible=False)

    async def answer(speaker: Speaker) -> None:
        heard_as.append(speaker.user.early)
        speaker.say("Well.")

    await place(wire, ScriptedConversation(terms, answer))
    assert heard_as == [early]


@virtual_time
async def test_words_after_the_reply_are_an_answer_to_it() -> None:
    wire = FakeWire(16)
    wire.speak((len(TERMS) + len(QUESTION)) * 0.06 + 1.0, "yes please do.")
    early: list[bool] = []

    async def answer(speaker: Speaker) -> None:
        early.append(speaker.user.early)
        speaker.say("Well.")

    async def terms(speaker: Speaker) -> None:
        speaker.say(TERMS, interruptible=False)
        speaker.say(QUESTION)

    await place(wire, ScriptedConversation(terms, answer, says("Fine.")))
    assert early == [False]
