"""One utterance comes in two parts and gets two answers; or an old sentence is answered after a newer one.

Right: what the caller adds before any of the reply was heard reopens the turn, and both parts are one utterance; what
is said while the agent may not be interrupted is answered afterwards, all of it at once.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import OPTIONS, place
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.cancellation import CancelReason

NOTICE = "This call may be recorded for quality purposes and also for training."


async def _slow_answer(speaker: Speaker) -> None:
    await speaker.wait(1.5)
    speaker.say("Here is the answer.")


@virtual_time
@pytest.mark.parametrize("still_thinking", [True, False])
async def test_words_that_come_just_after_the_commit_reopen_the_turn(still_thinking: bool) -> None:
    """Parts at 0 and +400 ms are committed to the dialogue as one, and answered once."""
    wire = FakeWire(14)
    end = wire.speak(2.0, "I want to pay.")
    wire.speak(end + 0.65, "with my credit card.")
    answer_s = 3.0 if still_thinking else 1.0

    async def answer(speaker: Speaker) -> None:
        await speaker.wait(answer_s)
        speaker.say("Here is the answer.")

    talk = ScriptedConversation(says("Hello."), answer)
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "I want to pay.", "I want to pay. with my credit card."]
    assert talk.heard() == ["Hello.", "", "Here is the answer."]
    # The dialogue learns either way that the first words come again.
    if still_thinking:
        assert talk.cancelled_with == [CancelReason.SUPERSEDED]
    else:
        assert talk.of("note") == ["turn_superseded"]


@virtual_time
async def test_a_comma_pause_does_not_end_the_utterance_at_all() -> None:
    wire = FakeWire(14)
    end = wire.speak(2.0, "I want to pay,")
    wire.speak(end + 0.9, "with my credit card.")
    talk = ScriptedConversation(says("Hello."), _slow_answer)
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "I want to pay, with my credit card."]


@virtual_time
async def test_a_number_said_in_groups_is_one_utterance() -> None:
    wire = FakeWire(14)
    end = wire.speak(2.0, "4 2 7")
    end = wire.speak(end + 0.8, "9 1 3")
    wire.speak(end + 0.8, "5 5")
    talk = ScriptedConversation(says("Your number?"), says("Thanks."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "4 2 7 9 1 3 5 5"]


@virtual_time
async def test_words_long_after_the_commit_replace_the_turn() -> None:
    wire = FakeWire(16)
    end = wire.speak(2.0, "I want to pay.")

    async def very_slow(speaker: Speaker) -> None:
        await speaker.wait(4.0)
        speaker.say("Never heard.")

    wire.speak(end + 2.5, "no forget it please.")
    talk = ScriptedConversation(says("Hello."), very_slow, says("Fine."))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start", "I want to pay.", "no forget it please."]
    assert talk.cancelled_with == [CancelReason.BARGE_IN]
    assert talk.heard()[1:] == ["", "Fine."]


@virtual_time
async def test_two_remarks_over_a_protected_notice_get_one_answer_to_both() -> None:
    """A, then B during speech that must be heard whole: no stale answer to A."""
    wire = FakeWire(16)
    wire.speak(0.5, "I have a question.")
    wire.speak(2.5, "about my last bill.")
    talk = ScriptedConversation(says(NOTICE, interruptible=False), says("Of course."))
    await place(wire, talk)
    assert talk.heard() == [NOTICE, "Of course."]
    assert talk.of("turn") == ["/session_start", "I have a question. about my last bill."]
    assert wire.clears == []


@virtual_time
async def test_what_is_not_protected_in_the_same_reply_can_be_interrupted() -> None:
    wire = FakeWire(16)

    async def both(speaker: Speaker) -> None:
        speaker.say(NOTICE, interruptible=False)
        speaker.say("And this is just a pleasantry that goes on for rather long.")

    wire.speak(len(NOTICE) * 0.06 + 1.0, "stop stop please.")
    talk = ScriptedConversation(both, says("Yes?"))
    await place(wire, talk)
    assert talk.heard()[0].startswith(NOTICE)
    assert talk.replies[0][1].unheard
    assert len(wire.clears) == 1


@virtual_time
async def test_an_unfinished_word_over_the_agent_is_kept_and_answered_after_the_reply() -> None:
    wire = FakeWire(16)
    text = "We have tickets for Monday, for Tuesday, and for the day after."
    wire.speak(1.5, "Tuesday", seconds=0.36)
    talk = ScriptedConversation(says(text), says("Tuesday it is."))
    await place(wire, talk)
    assert talk.heard() == [text, "Tuesday it is."]
    assert talk.of("turn") == ["/session_start", "Tuesday"]


@virtual_time
async def test_barge_in_can_be_switched_off_and_loses_no_words() -> None:
    wire = FakeWire(16)
    wire.speak(1.0, "what about tomorrow?")
    talk = ScriptedConversation(says("A greeting of some length, which goes on."), says("Closed."))
    await place(wire, talk, options=OPTIONS.model_copy(update={"barge_in": False}))
    assert wire.clears == []
    assert talk.heard() == ["A greeting of some length, which goes on.", "Closed."]


@virtual_time
async def test_the_agent_never_answers_itself() -> None:
    """Generation follows only the caller, a key, or silence."""
    wire = FakeWire(30)
    talk = ScriptedConversation(says("Hello. What can I do for you?"))
    await place(wire, talk)
    assert talk.of("turn") == ["/session_start"]


@virtual_time
@pytest.mark.parametrize("gap_s", [0.1, 0.2, 0.3, 0.5])
async def test_a_new_utterance_during_the_grace_of_a_cancelled_turn_waits_for_it(gap_s: float) -> None:
    wire = FakeWire(16)
    wire.speak(1.0, "check my order please.")

    async def lookup(speaker: Speaker) -> None:
        speaker.say("I will look that up for you, it takes a moment, please hold the line.")
        await speaker.tool("lookup", 6.0, interruptible=False)

    end = wire.speak(3.5, "no stop.")
    wire.speak(end + gap_s, "what are your hours?")
    talk = ScriptedConversation(says("Hi."), lookup, says("Nine to five."))
    await place(wire, talk)
    assert talk.parallel == 1
    kinds = [kind for kind, _ in talk.log]
    assert kinds.index("tool_done") < kinds.index("turn", kinds.index("tool_started"))
    assert talk.of("turn")[-1].endswith("what are your hours?")
    assert talk.heard()[-1] == "Nine to five."


@virtual_time
async def test_words_over_a_lookup_stop_it_as_soon_as_they_are_known_and_not_when_they_are_over() -> None:
    wire = FakeWire(14)
    end = wire.speak(2.0, "what is my balance?")
    onset = end + 2.0
    wire.speak(onset, "no wait I want to pay my bill first.")
    loop = asyncio.get_running_loop()
    stopped: list[float] = []

    async def look_up(speaker: Speaker) -> None:
        try:
            await speaker.tool("lookup", 8.0)
        finally:
            stopped.append(loop.time())

    talk = ScriptedConversation(says("Hello."), look_up, says("Which bill?"))
    await place(wire, talk)
    assert talk.of("turn")[2:] == ["no wait I want to pay my bill first."]
    assert talk.of("tool_cancelled") == ["lookup"]
    assert stopped[0] - (wire.began + onset) < 0.6


@virtual_time
async def test_words_that_continue_the_turn_they_stopped_early_come_with_it() -> None:
    wire = FakeWire(14)
    end = wire.speak(2.0, "what is my balance.")
    wire.speak(end + 0.6, "on my savings account please.")

    async def slow(speaker: Speaker) -> None:
        await speaker.wait(4.0)
        speaker.say("Fifty.")

    talk = ScriptedConversation(says("Hello."), slow, says("Fifty dollars."))
    await place(wire, talk)
    assert talk.of("turn")[-1] == "what is my balance. on my savings account please."
    assert talk.heard()[-1] == "Fifty dollars."
    assert talk.cancelled_with == [CancelReason.SUPERSEDED]


@virtual_time
@pytest.mark.parametrize(
    ("words", "honoured", "stopped"),
    [("please stop.", True, True), ("please stop.", False, False), ("I have another question.", True, False)],
)
async def test_stop_words_are_honoured_where_nothing_else_interrupts(words: str, honoured: bool, stopped: bool) -> None:
    wire = FakeWire(16)
    wire.speak(1.0, words)
    talk = ScriptedConversation(says(NOTICE), says("Yes?"))
    options = OPTIONS.model_copy(update={"barge_in": False, "stop_words_always": honoured})
    await place(wire, talk, options=options)
    assert bool(talk.replies[0][1].unheard) is stopped
    assert bool(wire.clears) is stopped
    assert talk.of("turn")[1:] == [words]
