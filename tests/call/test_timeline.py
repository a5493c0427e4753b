"""What is kept of the times of a turn."""

from __future__ import annotations

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import place
from tests.support.virtual_time import virtual_time
from voice_agent.call.timeline import Pause, Timeline


def test_each_voice_over_a_reply_is_kept_with_what_became_of_it() -> None:
    timeline = Timeline()
    timeline.voice_over(1.0, 1.1)
    timeline.decided(1.4, "backchannel")
    timeline.decided(1.6, "backchannel")
    timeline.voice_over(3.0, 3.1)
    timeline.voice_over(3.0)
    timeline.decided(3.5, "confirmed")
    assert timeline.pauses == [Pause(1.0, 1.1, 1.4, "backchannel"), Pause(3.0, 3.1, 3.5, "confirmed")]
    assert (timeline.barge_in_onset, timeline.pause, timeline.decision) == (3.0, 3.1, 3.5)


def test_an_interruption_after_a_backchannel_is_what_stands() -> None:
    timeline = Timeline()
    timeline.voice_over(1.0, 1.1)
    timeline.decided(1.3, "backchannel")
    timeline.voice_over(1.0, 1.5)
    timeline.decided(1.8, "confirmed")
    assert timeline.pauses == [Pause(1.0, 1.1, 1.8, "confirmed")]


def test_voices_over_one_reply_are_bounded() -> None:
    timeline = Timeline()
    for index in range(500):
        timeline.voice_over(float(index), index + 0.1)
    assert len(timeline.as_record()["pauses"]) == 50


def test_what_did_not_happen_is_left_out_of_the_record() -> None:
    assert Timeline(endpoint=1.00004).as_record() == {"endpoint": 1.0}


@virtual_time
async def test_a_call_keeps_its_beginning_the_times_of_its_turns_and_its_end() -> None:
    wire = FakeWire(4)
    wire.at(2.0, lambda call: call.type_text("hello"))
    talk = ScriptedConversation(says("Welcome."), says("Hello to you."))
    await place(wire, talk)
    kinds = [kind for kind, _ in talk.records]
    assert kinds == ["call_started", "turn_timeline", "turn_timeline", "call_ended"]
    greeting, answer = (data for kind, data in talk.records if kind == "turn_timeline")
    order = ("endpoint", "first_text", "first_sentence", "first_audio", "last_audio", "teardown")
    times = [answer[name] for name in order]
    assert times == sorted(times) and 2.0 <= times[0] < 2.1
    assert greeting["first_audio"] < greeting["last_audio"] <= greeting["teardown"]
    end = talk.records[-1][1]
    assert (end["turns"], end["outcome"]) == (2, "disconnected") and end["seconds"] >= 4
    assert len({data["call_id"] for _, data in talk.records}) == 1
