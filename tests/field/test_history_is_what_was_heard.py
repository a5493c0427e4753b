"""The assistant believes it said what nobody heard, or forgets what was heard, or records it twice or out of order.

Right: history comes from the one playout ledger: committed once per turn, as heard, before the caller's new words.
"""

from __future__ import annotations

import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.dialogue.reply import Heard

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."


@virtual_time
@pytest.mark.parametrize("reports_position", [False, True])
async def test_an_interruption_after_the_first_frame_leaves_no_heard_text(reports_position: bool) -> None:
    wire = FakeWire(6, reports_position=reports_position)
    wire.at(0.02, lambda call: call.type_text("stop"))
    talk = ScriptedConversation(says(WORDS), says("Yes?"))
    await place(wire, talk)
    assert talk.replies[0][1].extent is Heard.NOT
    assert talk.replies[0][1].unheard == WORDS


@virtual_time
@pytest.mark.parametrize("reports_position", [False, True])
@pytest.mark.parametrize("at", [0.6, 1.3, 2.0, 3.1, 4.4])
async def test_the_heard_words_are_remembered_to_the_word(at: float, reports_position: bool) -> None:
    """On wires with and without positions."""
    wire = FakeWire(10, reports_position=reports_position)
    wire.at(at, lambda call: call.type_text("stop"))
    talk = ScriptedConversation(says(WORDS), says("Yes?"))
    await place(wire, talk)
    truth = WORDS[: int(at / 0.06)].rsplit(" ", 1)[0].split()
    heard = talk.heard()[0].split()
    assert heard == WORDS.split()[: len(heard)]
    assert len(heard) == pytest.approx(len(truth), abs=1)


@virtual_time
async def test_a_streamed_reply_interrupted_half_way_is_remembered_half() -> None:
    """Heard words must not be lost because text and audio race each other."""
    wire = FakeWire(10)
    wire.speak(2.0, "tell me all of it.")
    wire.speak(5.0, "wait wait wait a moment.")

    async def reply(speaker: Speaker) -> None:
        await speaker.stream("The first sentence is quite long. The second one is long as well. And there is a third.")

    talk = ScriptedConversation(says("Hello."), reply, says(""))
    await place(wire, talk)
    start = wire.timelines()[1].timeline["first_audio"]
    assert start is not None
    heard_s = 5.1 - start
    assert len(talk.heard()[1]) == pytest.approx(heard_s / 0.06, abs=10)


@virtual_time
async def test_the_reply_is_recorded_before_the_words_that_interrupted_it() -> None:
    wire = FakeWire(8)
    wire.speak(1.0, "no no that is wrong.")
    talk = ScriptedConversation(says(WORDS), says("Sorry."))
    await place(wire, talk)
    order = [entry for entry in talk.log if entry[0] in ("turn", "commit")]
    assert [kind for kind, _ in order] == ["turn", "commit", "turn", "commit"]
    assert order[2][1] == "no no that is wrong."


@virtual_time
@pytest.mark.parametrize("offset_ms", range(-60, 80, 20))
async def test_an_interruption_around_the_last_tick_commits_once(offset_ms: int) -> None:
    """The reply ends and is interrupted at the same moment."""
    wire = FakeWire(6)
    seconds = len("Just a word. ") * 0.06
    wire.at(seconds + offset_ms / 1000, lambda call: call.type_text("hello"))
    talk = ScriptedConversation(says("Just a word. "), says("Hi."))
    await place(wire, talk)
    assert len(talk.replies) == len({turn for turn, _ in talk.replies}) == 2


@virtual_time
async def test_two_messages_cut_between_them_leave_the_first_heard_and_the_second_not() -> None:
    wire = FakeWire(8)

    async def two(speaker: Speaker) -> None:
        speaker.say("Message one.")
        speaker.say("Message two is longer.")

    wire.at(len("Message one.") * 0.06 + 0.05, lambda call: call.type_text("hello"))
    talk = ScriptedConversation(two, says("Hi."))
    await place(wire, talk)
    reply = talk.replies[0][1]
    assert (reply.heard.strip(), reply.unheard.strip()) == ("Message one.", "Message two is longer.")
