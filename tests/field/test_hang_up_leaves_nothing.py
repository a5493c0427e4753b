"""A caller who leaves at a bad moment leaves tasks, timers, memory or a dead line behind.

Right: one task group per call; every wait at its end has a deadline; closing is idempotent; what must follow a call
follows exactly once, whatever was stuck. `place` checks tasks, subscriptions, references and the close after each call.
"""

from __future__ import annotations

import asyncio
import gc
import random
import weakref

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.recognizer import FakeRecognizer
from tests.fakes.voice import FakeVoice
from tests.fakes.wire import FakeWire
from tests.support.calls import make_call, place
from tests.support.virtual_time import run_virtual, virtual_time
from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.floor import State
from voice_agent.call.outcome import CallOutcome
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.speech.protocols import Priority, Transcript

LIMIT_S = 5.0


async def _busy(speaker: Speaker) -> None:
    await speaker.stream("This reply streams for quite a while and says many things. " * 3)
    await speaker.tool("lookup", 2.0)
    speaker.say("And this comes after the tool.")


async def _hang_up_at(at: float, leave: str) -> tuple[FakeWire, ScriptedConversation, CallOutcome]:
    wire = FakeWire(at, leave=leave)
    wire.speak(2.5, "tell me about my bill, please.")
    wire.speak(6.0, "no wait a second.")
    talk = ScriptedConversation(says("Hello, how can I help?"), _busy, says("Sure."))
    outcome = await place(wire, talk, voice=FakeVoice(first_byte_s=0.15))
    return wire, talk, outcome


@settings(max_examples=20, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(0, 14), st.sampled_from(["hang_up", "disconnected"]))
def test_a_hang_up_at_any_instant_leaves_nothing_behind(at: float, leave: str) -> None:
    _, talk, outcome = run_virtual(_hang_up_at(at, leave))
    assert outcome.outcome == "disconnected"
    assert len(talk.replies) == len({turn for turn, _ in talk.replies}) == len(talk.statuses)
    # Who hung up is done; who was cut off may come back.
    assert talk.log[-1] == ("close", "disconnected" if leave == "hang_up" else "dropped")


class _StuckRecognizer:
    """Never answers and ignores its cancellation for a minute."""

    async def transcribe(self, pcm: object, *, priority: Priority = Priority.FINAL_TRANSCRIPT) -> Transcript:
        until = asyncio.get_running_loop().time() + 60
        while asyncio.get_running_loop().time() < until:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
        return Transcript("late", 1.0)


@virtual_time
async def test_a_hang_up_while_engines_are_only_starting_ends_the_call() -> None:
    """The recogniser and the voice have not answered once."""
    loop = asyncio.get_running_loop()
    wire = FakeWire(2.6)
    wire.speak(1.0, "hello hello hello.")
    voice = FakeVoice(first_byte_s=60)
    recognizer = FakeRecognizer(["never"], seconds=60)
    await place(wire, ScriptedConversation(says("Hello.")), voice=voice, recognizer=recognizer)
    assert loop.time() <= 2.6 + 1.0


async def _ignores_cancellation(speaker: Speaker) -> None:
    until = asyncio.get_running_loop().time() + 120
    while asyncio.get_running_loop().time() < until:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@virtual_time
async def test_stuck_wire_engines_and_dialogue_end_within_the_closing_time() -> None:
    """Nothing that is stuck delays the close beyond its limit."""
    loop = asyncio.get_running_loop()
    abandoned = REGISTRY.get_sample_value("voice_agent_abandoned_tasks_total", {"kind": "turn"}) or 0.0
    wire = FakeWire(4.0, stuck=True)
    wire.speak(1.0, "hello hello hello.")
    talk = ScriptedConversation(says(""), _ignores_cancellation)
    voice = FakeVoice(first_byte_s=60, ignore_cancel=True)
    closed_at: list[float] = []

    async def close(outcome: str) -> None:
        closed_at.append(loop.time())
        talk.closed.append(outcome)

    talk.close = close  # type: ignore[method-assign]
    wire.at(2.9, lambda call: call.type_text("and now?"))
    async with MediaClock() as clock:
        await make_call(wire, talk, clock, voice=voice).run()
    assert loop.time() - 4.0 <= LIMIT_S + 1.0
    assert closed_at[0] - 4.0 <= LIMIT_S
    assert len(closed_at) == 1
    assert (REGISTRY.get_sample_value("voice_agent_abandoned_tasks_total", {"kind": "turn"}) or 0.0) == abandoned + 1
    # What was abandoned ends by itself in time; nobody waits for it.
    await asyncio.sleep(200)


@virtual_time
async def test_a_recogniser_that_ignores_cancellation_does_not_hold_the_call() -> None:
    loop = asyncio.get_running_loop()
    wire = FakeWire(2.5)
    wire.speak(1.0, "hello hello hello.")
    talk = ScriptedConversation(says(""))
    async with MediaClock() as clock:
        await make_call(wire, talk, clock, recognizer=_StuckRecognizer()).run()
    assert loop.time() <= 2.5 + 1.5
    assert talk.closed == ["disconnected"]
    await asyncio.sleep(120)


@virtual_time
async def test_ending_from_three_tasks_at_once_while_the_caller_leaves_is_one_end() -> None:
    wire = FakeWire(2.0)
    talk = ScriptedConversation(says("Hello, this is a long greeting that is still playing when all ends."))
    async with MediaClock() as clock:
        call = make_call(wire, talk, clock)

        async def end(reason: CancelReason) -> None:
            await asyncio.sleep(2.0)
            call.end(reason)
            call.end(reason)

        async with asyncio.TaskGroup() as group:
            for reason in (CancelReason.SHUTDOWN, CancelReason.DISCONNECTED, CancelReason.TIMEOUT):
                group.create_task(end(reason))
            outcome = await call.run()
        call.end(CancelReason.HANG_UP)
    assert (len(talk.closed), len(talk.replies), outcome.turns) == (1, 1, 1)


@virtual_time
async def test_a_call_that_was_ended_before_it_ran_greets_nobody() -> None:
    wire, talk = FakeWire(5), ScriptedConversation(says("Hello."))
    async with MediaClock() as clock:
        call = make_call(wire, talk, clock)
        call.end(CancelReason.SHUTDOWN)
        outcome = await call.run()
    assert (outcome.reason, outcome.turns, talk.inputs) == ("shutdown", 0, [])
    assert talk.closed == ["shutdown"]


@virtual_time
async def test_a_call_cancelled_from_outside_still_closes_its_conversation() -> None:
    wire, talk = FakeWire(60), ScriptedConversation(says("Hello, this greeting is being spoken."))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(place(wire, talk))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
    assert talk.closed == ["shutdown"]
    assert talk.heard()[0] in "Hello, this greeting is being spoken."


@virtual_time
async def test_hundred_calls_one_after_the_other_leave_nothing() -> None:
    """No task, no reference, whatever instant they end at."""
    dice, references = random.Random(7), []
    for _ in range(100):
        calls: list[Call] = []
        wire = FakeWire(dice.uniform(0, 6))
        wire.speak(1.5, "what is my balance?")
        await place(wire, ScriptedConversation(says("Hello."), _busy), calls=calls)
        references.append(weakref.ref(calls.pop()))
    gc.collect()
    assert [r for r in references if r() is not None] == []


@virtual_time
async def test_no_timer_fires_after_the_call() -> None:
    """A minute after the end nothing has happened."""
    wire = FakeWire(3)
    talk = ScriptedConversation(says("Hello."))
    await place(wire, talk)
    before, messages = list(talk.log), len(wire.messages)
    await asyncio.sleep(60)
    assert (talk.log, len(wire.messages), wire.after_end) == (before, messages, 0)


@virtual_time
async def test_after_twenty_hang_ups_in_mid_reply_the_next_caller_hears_the_greeting() -> None:
    """One voice, one recogniser for all, nothing of a call shared."""
    voice = FakeVoice()
    for _ in range(20):
        await place(FakeWire(0.7), ScriptedConversation(says("Hello, how can I help you today?")), voice=voice)
    wire = FakeWire(4)
    talk = ScriptedConversation(says("Hello, how can I help you today?"))
    await place(wire, talk, voice=voice)
    assert talk.heard() == ["Hello, how can I help you today?"]
    assert voice.open == 0


@virtual_time
async def test_a_slow_tool_that_must_not_be_cut_may_finish_within_the_closing_time() -> None:
    wire = FakeWire(3.2)
    wire.speak(1.0, "book it for me.")

    async def booking(speaker: Speaker) -> None:
        await speaker.tool("book", 2.5, interruptible=False)

    talk = ScriptedConversation(says(""), booking)
    await place(wire, talk)
    assert talk.of("tool_done") == ["book"]
    assert talk.log[-1][0] == "close"


@virtual_time
async def test_a_close_that_hangs_is_bounded() -> None:
    loop = asyncio.get_running_loop()
    await place(FakeWire(1.0), ScriptedConversation(says(""), close_s=600))
    assert loop.time() <= 1.0 + LIMIT_S + 0.5


@virtual_time
async def test_state_and_ids_can_be_inspected_and_a_closed_call_is_deaf() -> None:
    wire, calls = FakeWire(1.0), list[Call]()
    await place(wire, ScriptedConversation(says("Hello."), id="conv"), calls=calls)
    call = calls[0]
    assert (call.state, call.call_id, call.conversation_id) == (State.CLOSED, "call", "conv")
    call.inputs.hear(bytes(640))
    call.inputs.type_text("anyone?")
    call.inputs.press_key("1")
    call.inputs.played(100)
    assert call.state is State.CLOSED


def test_the_limits_hold_for_every_seed() -> None:
    dice = random.Random(11)
    for _ in range(10):
        _, talk, _ = run_virtual(_hang_up_at(dice.uniform(2.5, 9), "hang_up"))
        assert len(talk.closed) == 1
