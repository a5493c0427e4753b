"""Who is admitted, who is refused, who is resumed, and how the line is emptied."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import REGISTRY

from tests.fakes.conversation import ScriptedConversation, says
from tests.fakes.wire import FakeWire
from tests.support.calls import make_call
from tests.support.virtual_time import virtual_time
from voice_agent.call.clock import MediaClock
from voice_agent.call.outcome import CallOutcome
from voice_agent.call.registry import CallRegistry, Refused

DROPPED = CallOutcome("disconnected", "connection_lost", 3.0, 1)
HUNG_UP = CallOutcome("disconnected", "caller_hang_up", 3.0, 1)


def _registry(max_calls: int = 2) -> CallRegistry:
    registry = CallRegistry(max_calls)
    registry.ready = True
    return registry


def _refusal(registry: CallRegistry, conversation_id: str) -> str:
    before = _refused_total()
    with pytest.raises(Refused) as refused:
        registry.admit(conversation_id)
    assert refused.value.message.endswith(".")
    assert _refused_total() == before + 1
    return refused.value.code


def _refused_total() -> float:
    samples = [s for m in REGISTRY.collect() if m.name == "voice_agent_calls_refused" for s in m.samples]
    return sum(s.value for s in samples if s.name.endswith("_total"))


@virtual_time
async def test_nobody_is_admitted_before_the_service_is_warm() -> None:
    assert _refusal(CallRegistry(2), "a") == "not_ready"


@virtual_time
async def test_a_full_line_refuses_and_a_freed_place_is_given_again() -> None:
    registry = _registry(1)
    with registry.admit("a"):
        assert REGISTRY.get_sample_value("voice_agent_calls_active") == 1
        assert _refusal(registry, "b") == "at_capacity"
    assert REGISTRY.get_sample_value("voice_agent_calls_active") == 0
    registry.admit("b").release()


@virtual_time
async def test_a_place_that_no_call_took_counts_as_a_refusal_and_not_as_a_call() -> None:
    busy = {"reason": "conversation_busy"}
    before = REGISTRY.get_sample_value("voice_agent_calls_refused_total", busy) or 0
    with _registry().admit("a") as admission:
        admission.refused = "conversation_busy"
    assert REGISTRY.get_sample_value("voice_agent_calls_refused_total", busy) == before + 1
    assert not REGISTRY.get_sample_value("voice_agent_calls_total", {"channel": "unknown", "outcome": "failed"})


@virtual_time
async def test_a_caller_who_dials_again_at_once_waits_for_the_old_connection_to_end() -> None:
    registry = _registry()
    await registry.vacated("a", 1)
    old = registry.admit("a")
    old.ended(DROPPED)
    asyncio.get_running_loop().call_later(0.4, old.release)
    await registry.vacated("a", 1)
    assert asyncio.get_running_loop().time() == pytest.approx(0.4)
    registry.admit("a")
    await registry.vacated("a", 1)
    assert asyncio.get_running_loop().time() == pytest.approx(1.4)
    assert _refusal(registry, "a") == "conversation_busy"


@virtual_time
@pytest.mark.parametrize(("outcome", "resumable"), [(DROPPED, True), (HUNG_UP, False), (None, True)])
async def test_what_its_caller_did_not_end_may_be_gone_on_with(outcome: CallOutcome | None, resumable: bool) -> None:
    with _registry().admit("a") as admission:
        if outcome is not None:
            admission.ended(outcome)
    assert admission.resumable is resumable


@virtual_time
async def test_a_live_conversation_has_one_connection() -> None:
    registry = _registry()
    admission = registry.admit("a")
    assert _refusal(registry, "a") == "conversation_busy"
    admission.release()
    admission.release()
    assert not registry.is_live("a")


async def _carry(registry: CallRegistry, wire: FakeWire, talk: ScriptedConversation, clock: MediaClock) -> CallOutcome:
    """Take the conversation over and carry a call of it to its end."""
    await registry.take_over("a", 6)
    with registry.admit("a") as admission:
        call = make_call(wire, talk, clock)
        admission.attach(call)
        outcome = await call.run()
        admission.ended(outcome)
        return outcome


@virtual_time
async def test_the_newer_connection_of_a_caller_takes_the_conversation_over_at_once() -> None:
    """The older one is half open: it neither ends nor answers, and would keep its call until the media timeout."""
    registry, loop = _registry(), asyncio.get_running_loop()
    old, new = FakeWire(3600, stuck=True), FakeWire(5)
    talk, again = ScriptedConversation(says("Hello, a rather long greeting.")), ScriptedConversation(says("Hello."))
    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        first = group.create_task(_carry(registry, old, talk, clock))
        await asyncio.sleep(0.5)
        began = loop.time()
        second = group.create_task(_carry(registry, new, again, clock))
        await asyncio.sleep(2)
        assert new.frames[0][0] - began < 1.5
    assert (first.result().outcome, first.result().reason) == ("disconnected", "superseded")
    assert second.result().reason == "caller_hang_up"
    assert talk.closed == ["dropped"]
    assert (old.hung_up, talk.heard()) == (["superseded"], ["Hello, a"])


@virtual_time
async def test_of_several_connections_at_once_exactly_one_has_the_conversation_at_a_time() -> None:
    registry = _registry()
    wires = [FakeWire(3 + n) for n in range(4)]
    talks = [ScriptedConversation(says("Hello.")) for _ in wires]
    refused = 0

    async def carry(index: int, clock: MediaClock) -> None:
        nonlocal refused
        try:
            await _carry(registry, wires[index], talks[index], clock)
        except Refused:
            refused += 1

    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        for index in range(4):
            group.create_task(carry(index, clock))
            await asyncio.sleep(0.01 * index)
    assert refused < 4
    assert not registry.is_live("a")
    assert sum(len(talk.closed) for talk in talks) == 4 - refused


@virtual_time
async def test_nobody_is_ended_by_a_caller_who_is_not_admitted() -> None:
    registry = _registry()
    wire, talk = FakeWire(3), ScriptedConversation(says("Hello."))
    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        carried = group.create_task(_carry(registry, wire, talk, clock))
        await asyncio.sleep(1)
        registry.ready = False
        await registry.take_over("a", 1)
        assert registry.is_live("a")
    assert carried.result().reason == "caller_hang_up"


LEAVING = {"utter_service_ending": "I have to go. Goodbye."}


@virtual_time
async def test_draining_lets_phrases_end_says_goodbye_and_refuses_new_calls() -> None:
    registry, wires = _registry(3), [FakeWire(3600) for _ in range(3)]
    greeting = "We are open from nine to five. "
    turns = (says(greeting, source="model"), says(greeting + "And so on without end.", source="model"), says("Hi."))
    talks = [ScriptedConversation(turn, lines=LEAVING) for turn in turns]
    outcomes: list[CallOutcome] = []

    async def run(index: int, clock: MediaClock) -> None:
        with registry.admit(str(index)) as admission:
            call = make_call(wires[index], talks[index], clock, call_id=str(index))
            admission.attach(call)
            outcomes.append(await call.run())
            admission.ended(outcomes[-1])

    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        for index in range(3):
            group.create_task(run(index, clock))
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        assert await registry.drain(10)
        assert asyncio.get_running_loop().time() - began < 4
        assert registry.active == ()
        assert _refusal(registry, "z") == "draining"
    assert {(o.outcome, o.reason) for o in outcomes} == {("completed", "shutdown")}
    assert [w.hung_up for w in wires] == [["shutdown"]] * 3
    assert [t.closed for t in talks] == [["shutdown"]] * 3
    assert [t.heard()[0].strip() for t in talks] == [greeting.strip()] * 2 + ["Hi."]
    assert all(w.transcripts("agent")[-1] == LEAVING["utter_service_ending"] for w in wires)


@virtual_time
@pytest.mark.parametrize("lines", [{}, {"utter_service_ending": "word " * 200}])
async def test_a_goodbye_without_wording_or_without_end_keeps_no_call(lines: dict[str, str]) -> None:
    registry, wire = _registry(), FakeWire(3600)
    wire.speak(1.0, "and " * 100, seconds=60)
    talk = ScriptedConversation(says("word " * 200), lines=lines)
    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        carried = group.create_task(_carry(registry, wire, talk, clock))
        await asyncio.sleep(2)
        began = asyncio.get_running_loop().time()
        assert await registry.drain(10)
        assert asyncio.get_running_loop().time() - began < 10
    assert carried.result().reason == "shutdown"


@virtual_time
async def test_draining_has_a_limit() -> None:
    registry = _registry()
    with registry.admit("a"):
        assert await registry.drain(2) is False


async def test_a_reserved_place_counts_and_is_given_back_only_while_nobody_has_come_for_it() -> None:
    registry = _registry(1)
    kept = registry.admit("a", reserve=True)
    assert _refusal(registry, "b") == "at_capacity"
    kept.give_back()
    kept.give_back()
    with registry.admit("b", reserve=True) as taken:
        taken.taken = True
        taken.give_back()
        assert registry.is_live("b")
    assert not registry.is_live("b")


async def test_what_rings_holds_no_drain_up() -> None:
    registry = _registry(2)
    kept = registry.admit("a", reserve=True)
    assert await registry.drain(0.2) is True
    assert kept.released.is_set()


async def test_whoever_is_rung_up_and_calls_us_is_put_through_at_once_and_the_ringing_is_taken_back() -> None:
    registry = _registry(1)
    rings = registry.admit("a", reserve=True)
    await registry.take_over("a", 0)
    assert rings.unwanted.is_set()
    with registry.admit("a"):
        pass
    asks = registry.admit("b", reserve=True)
    asks.taken = True  # as a wire does that waits for the answer itself
    await registry.take_over("b", 0)
    assert asks.unwanted.is_set()
    assert registry.is_live("b"), "until it has been taken back"
    asks.release()


async def test_a_token_alone_takes_nothing_back_that_rings() -> None:
    registry = _registry(1)
    rings = registry.admit("a", reserve=True)
    await registry.take_over("a", 0, quiet_s=0.001)
    assert not rings.unwanted.is_set()
    rings.give_back()


async def test_what_waits_for_an_answer_by_itself_is_taken_back_by_a_drain() -> None:
    registry = _registry(1)
    rings = registry.admit("a", reserve=True)
    rings.taken = True
    draining = asyncio.create_task(registry.drain(5))
    await rings.unwanted.wait()
    rings.release()
    assert await draining
