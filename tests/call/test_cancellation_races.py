"""Cancellation in every state, at every instant: one end, one commit, no second turn beside the first."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import make_call, place
from tests.support.virtual_time import run_virtual, virtual_time
from voice_agent.call.backstop import BACKSTOP_S
from voice_agent.call.clock import MediaClock
from voice_agent.call.floor import State
from voice_agent.call.wire import TranscriptMessage
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import TurnStatus


async def _model_then_tool(speaker: Speaker) -> None:
    await speaker.stream("Let me have a look at that for you. ")
    await speaker.tool("lookup", 1.5)
    await speaker.stream("It is fifty dollars and twenty cents, due on the first of next month.")


async def _one_interruption(at: float) -> tuple[FakeWire, ScriptedConversation]:
    wire = FakeWire(20)
    wire.speak(1.0, "what is my balance?")
    wire.speak(at, "no tell me the hours.")
    talk = ScriptedConversation(says("Hello."), _model_then_tool, says("Nine to five."), says("As I said."))
    await place(wire, talk, voice=FakeVoice(first_byte_s=0.2))
    return wire, talk


@settings(max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(2.3, 9))
def test_an_interruption_at_any_instant_is_answered_in_order(at: float) -> None:
    _, talk = run_virtual(_one_interruption(at))
    said = " ".join(text for text in talk.of("turn"))
    assert "no tell me the hours." in said, "no words are lost"
    assert talk.parallel == 1
    order = [kind for kind, _ in talk.log if kind in ("turn", "commit")]
    assert order == ["turn", "commit"] * (len(order) // 2)
    assert len(talk.replies) == len({turn for turn, _ in talk.replies})
    assert TurnStatus.ERROR not in talk.statuses


@virtual_time
async def test_a_tool_is_cancelled_with_its_turn_and_an_uninterruptible_one_finishes_first() -> None:
    for interruptible, kind in ((True, "tool_cancelled"), (False, "tool_done")):

        async def lookup(speaker: Speaker, interruptible: bool = interruptible) -> None:
            speaker.say("One moment please, this takes a while, so bear with me for a little longer.")
            await speaker.tool("lookup", 4.0, interruptible=interruptible)
            speaker.say("Never heard.")

        wire = FakeWire(16)
        wire.speak(1.0, "look it up please.")
        wire.speak(4.0, "stop stop please.")
        talk = ScriptedConversation(says("Hi."), lookup, says("Yes?"))
        await place(wire, talk)
        assert talk.of(kind) == ["lookup"]
        assert talk.heard()[-1] == "Yes?"
        assert "Never heard." not in wire.transcripts("agent")


@virtual_time
async def test_the_model_stream_ends_within_the_decision() -> None:
    ended: list[float] = []

    async def streaming(speaker: Speaker) -> None:
        try:
            await speaker.stream("word " * 400, seconds_per_word=0.05)
        finally:
            ended.append(asyncio.get_running_loop().time())

    wire = FakeWire(12)
    wire.speak(1.0, "tell me a story.")
    onset = 5.0
    wire.speak(onset, "stop that right now please.")
    await place(wire, ScriptedConversation(says("Hi."), streaming, says("")))
    decided = wire.timelines()[1].timeline["decision"]
    assert decided is not None
    assert ended[0] - decided <= 0.2
    assert ended[0] - onset <= 0.7


@virtual_time
@pytest.mark.parametrize("reason", list(CancelReason))
async def test_ending_while_idle_thinking_speaking_or_paused(reason: CancelReason) -> None:
    reached: set[State] = set()
    for at in (0.0, 0.05, 0.7, 1.5, 2.05, 2.5, 3.2, 3.4, 4.5):
        wire = FakeWire(30)
        wire.speak(1.0, "what is my balance?")
        wire.noise(3.3, 0.15)
        talk = ScriptedConversation(says("Hello."), _model_then_tool)
        async with MediaClock() as clock:
            call = make_call(wire, talk, clock, voice=FakeVoice(first_byte_s=0.1))

            def end(target: object, call: object = call) -> None:
                reached.add(call.state)  # type: ignore[attr-defined]
                for _ in range(3):
                    call.end(reason)  # type: ignore[attr-defined]

            wire.at(at, end)
            outcome = await call.run()
        assert outcome.seconds <= at + 1.5
        assert len(talk.closed) == 1
        assert len(talk.replies) == len({turn for turn, _ in talk.replies})
    assert reached >= {State.LISTENING, State.THINKING, State.SPEAKING, State.PAUSED, State.HEARING}


class _Raising(ScriptedConversation):
    async def turn(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
        raise ZeroDivisionError("a fault of ours")


@virtual_time
async def test_a_dialogue_that_raises_costs_an_apology_and_not_the_call() -> None:
    wire = FakeWire(5)
    talk = _Raising(says(""), lines={"utter_internal_error": "Something went wrong."})
    outcome = await place(wire, talk, calls=[])
    assert wire.transcripts("agent") == ["Something went wrong."]
    assert outcome.reason == "caller_hang_up"


@virtual_time
async def test_typed_words_in_a_burst_are_one_turn_at_a_time() -> None:
    wire = FakeWire(8)
    dice = random.Random(3)
    for index in range(30):
        wire.at(dice.uniform(0.5, 3), lambda call, index=index: call.type_text(f"line {index}"))
    talk = ScriptedConversation(says("Hello."), says("I see."))
    await place(wire, talk)
    assert talk.parallel == 1
    assert sorted(" ".join(talk.of("turn")[1:]).split()) == sorted(" ".join(f"line {i}" for i in range(30)).split())


@virtual_time
async def test_twice_interrupted_in_a_second_is_heard_twice() -> None:
    wire = FakeWire(14)
    wire.speak(1.0, "stop please stop.", seconds=0.6)
    wire.speak(2.1, "tell me the hours.", seconds=0.7)
    talk = ScriptedConversation(
        says("A greeting that goes on for a good while."), says("Yes? What is it?"), says("Nine.")
    )
    await place(wire, talk)
    assert talk.heard()[-1] == "Nine."
    assert talk.of("turn")[-1].endswith("tell me the hours.")


@virtual_time
async def test_a_cancelled_turn_that_never_ends_is_abandoned_and_the_caller_is_served() -> None:
    async def deaf(speaker: Speaker) -> None:
        speaker.say("I am about to be interrupted in a long sentence that never comes to its end.")
        until = asyncio.get_running_loop().time() + 60
        while asyncio.get_running_loop().time() < until:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    wire = FakeWire(50)
    wire.at(2.0, lambda call: call.type_text("hello?"))
    talk = ScriptedConversation(deaf, says("Here I am."))
    async with MediaClock() as clock:
        await make_call(wire, talk, clock).run()
    assert talk.heard()[-1] == "Here I am."
    served = next(t for t, text in talk_times(wire) if text == "Here I am.")
    assert served == pytest.approx(2.0 + BACKSTOP_S + 0.5, abs=0.6)
    await asyncio.sleep(60)


def talk_times(wire: FakeWire) -> list[tuple[float, str]]:
    return [(t, m.text) for t, m in wire.messages if isinstance(m, TranscriptMessage) and m.role == "agent"]


@virtual_time
async def test_the_heard_words_are_recorded_before_the_turn_learns_of_its_cancellation() -> None:
    async def watched(speaker: Speaker) -> None:
        speaker.cancel.on_cancel(lambda: speaker.log.append(("cancelled", speaker.turn_id)))
        speaker.say("A sentence that is long enough to be interrupted.")
        await speaker.wait(5)

    wire = FakeWire(4)
    wire.at(1.0, lambda call: call.type_text("stop"))
    talk = ScriptedConversation(watched, says(""))
    await place(wire, talk)
    assert [kind for kind, _ in talk.log[:4]] == ["turn", "commit", "cancelled", "turn"]


@virtual_time
async def test_when_a_turn_ends_under_the_callers_words_the_caller_is_being_heard() -> None:
    wire, seen = FakeWire(5), list[State]()
    wire.speak(1.0, "no and", seconds=0.4)
    talk = ScriptedConversation(says("A sentence that is long enough to be interrupted."), says(""))
    async with MediaClock() as clock:
        call = make_call(wire, talk, clock)
        wire.at(2.2, lambda _: seen.append(call.state))
        await call.run()
    # Confirmed by its word in the pause, cancelled, ended; and more words are still being waited for.
    assert wire.timelines()[0].timeline["teardown"] < 2.2  # type: ignore[operator]
    assert seen == [State.HEARING]
    assert talk.of("turn")[1:] == ["no and"]
