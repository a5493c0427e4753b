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
    registry = CallRegistry(max_calls, 30)
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
    assert _refusal(CallRegistry(2, 30), "a") == "not_ready"


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
    assert registry.admit("a").resumed
    await registry.vacated("a", 1)
    assert asyncio.get_running_loop().time() == pytest.approx(1.4)
    assert _refusal(registry, "a") == "conversation_busy"


@virtual_time
async def test_an_admission_that_came_to_no_call_does_not_use_up_the_resumption() -> None:
    registry = _registry()
    with registry.admit("a") as admission:
        admission.ended(DROPPED)
    with registry.admit("a") as refused:
        assert refused.resumed
    with registry.admit("a") as again:
        assert again.resumed
        again.ended(HUNG_UP)
    assert not registry.admit("a").resumed


@virtual_time
async def test_a_live_conversation_has_one_connection() -> None:
    registry = _registry()
    admission = registry.admit("a")
    assert _refusal(registry, "a") == "conversation_busy"
    admission.release()
    admission.release()
    assert not registry.is_live("a")


@virtual_time
@pytest.mark.parametrize(
    ("outcome", "after_s", "resumed"),
    [(DROPPED, 3, True), (DROPPED, 31, False), (HUNG_UP, 3, False), (None, 3, False)],
)
async def test_a_dropped_connection_may_come_back_in_time(
    outcome: CallOutcome | None, after_s: float, resumed: bool
) -> None:
    registry = _registry()
    with registry.admit("a") as admission:
        assert not admission.resumed
        if outcome is not None:
            admission.ended(outcome)
    await asyncio.sleep(after_s)
    with registry.admit("a") as admission:
        assert admission.resumed is resumed
        admission.ended(HUNG_UP)
    with registry.admit("a") as admission:
        assert not admission.resumed, "a resumption is used once"


@virtual_time
async def test_draining_ends_the_calls_and_refuses_new_ones() -> None:
    registry, wires = _registry(), [FakeWire(3600), FakeWire(3600)]
    talk = [ScriptedConversation(says("Hello, a rather long greeting comes here.")) for _ in wires]

    async def run(index: int, clock: MediaClock) -> None:
        with registry.admit(str(index)) as admission:
            call = make_call(wires[index], talk[index], clock, call_id=str(index))
            admission.attach(call)
            outcome = await call.run()
            admission.ended(outcome)
            assert (outcome.outcome, outcome.reason) == ("completed", "shutdown")

    async with MediaClock() as clock, asyncio.TaskGroup() as group:
        for index in range(2):
            group.create_task(run(index, clock))
        await asyncio.sleep(1)
        assert len(registry.active) == 2
        assert await registry.drain(5)
        assert registry.active == ()
        assert _refusal(registry, "z") == "draining"
    assert [w.hung_up for w in wires] == [["shutdown"]] * 2
    assert [t.closed for t in talk] == [["shutdown"]] * 2


@virtual_time
async def test_draining_has_a_limit() -> None:
    registry = _registry()
    with registry.admit("a"):
        assert await registry.drain(2) is False
