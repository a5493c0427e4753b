"""Deadlines, retries and fallbacks, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.model import Entry, ScriptedModel
from tests.support.virtual_time import virtual_time
from voice_agent.llm.deadlines import DeadlinedModel
from voice_agent.llm.fallback import Candidate, FallbackModel
from voice_agent.llm.protocol import LanguageModel, Message, ModelError, ModelRequest, TextDelta

REQUEST = ModelRequest([Message("user", "hello")])
DOWN = ModelError("down")


async def _text(model: LanguageModel) -> str:
    return "".join([event.text async for event in model.stream(REQUEST) if isinstance(event, TextDelta)])


def _deadlined(*script: Entry) -> DeadlinedModel:
    return DeadlinedModel(ScriptedModel(script), first_token_s=2, between_tokens_s=1)


@virtual_time
async def test_a_slow_first_token_times_out_and_its_stream_is_closed_first() -> None:
    inner = ScriptedModel(["late"], first_token_s=9)
    with pytest.raises(ModelError, match="within 2 s") as caught:
        await _text(DeadlinedModel(inner, first_token_s=2, between_tokens_s=1))
    assert caught.value.kind == "timeout_first_token"
    assert asyncio.get_running_loop().time() == pytest.approx(2)
    assert (inner.closed_early, inner.open_streams) == (1, 0)


@virtual_time
async def test_a_stall_between_tokens_has_its_own_limit_and_kind() -> None:
    with pytest.raises(ModelError) as caught:
        await _text(_deadlined([1.5, "one", 1.5, "two"]))
    assert caught.value.kind == "timeout_between_tokens"


@virtual_time
async def test_a_slow_reader_is_not_the_models_fault() -> None:
    words = []
    async for event in _deadlined("one two three").stream(REQUEST):
        words.append(event)
        await asyncio.sleep(60)
    assert len(words) == 4


@virtual_time
async def test_a_timeout_of_the_model_itself_is_not_taken_for_ours() -> None:
    with pytest.raises(ModelError) as caught:
        await _text(_deadlined([TimeoutError()]))
    assert caught.value.kind == "provider"


@virtual_time
async def test_a_failure_before_the_first_token_is_retried_after_a_pause() -> None:
    model = ScriptedModel([[DOWN], "hello"])
    assert await _text(FallbackModel([Candidate(model, 1)], retry_pause_s=0.5)) == "hello"
    assert asyncio.get_running_loop().time() == pytest.approx(0.5)


@virtual_time
async def test_a_failure_after_the_first_token_is_never_retried() -> None:
    first, second = ScriptedModel([["half ", DOWN], "again"]), ScriptedModel(["other"])
    with pytest.raises(ModelError, match="down"):
        await _text(FallbackModel([Candidate(first, 3), Candidate(second)]))
    assert (len(first.requests), len(second.requests)) == (1, 0)


@virtual_time
async def test_fallbacks_are_tried_in_order_with_their_own_retries() -> None:
    first, second, third = (ScriptedModel(then=[DOWN]) for _ in range(3))
    last = ScriptedModel(["I am here"])
    chain = [Candidate(first, 2), Candidate(second, 0), Candidate(third, 1), Candidate(last)]
    assert await _text(FallbackModel(chain)) == "I am here"
    assert [len(model.requests) for model in (first, second, third, last)] == [3, 1, 2, 1]


@virtual_time
async def test_when_all_fail_the_last_error_is_raised() -> None:
    models = [ScriptedModel(then=[ModelError(text)]) for text in ("one", "two")]
    with pytest.raises(ModelError, match="two"):
        await _text(FallbackModel([Candidate(model) for model in models]))


@virtual_time
async def test_a_wrong_configuration_is_not_retried() -> None:
    model = ScriptedModel(then=[ModelError("bad key", "configuration")])
    with pytest.raises(ModelError, match="bad key"):
        await _text(FallbackModel([Candidate(model, 5)]))
    assert len(model.requests) == 1


@virtual_time
async def test_a_model_too_slow_is_not_asked_twice_while_another_is_left() -> None:
    slow = ScriptedModel(then=[9.0, "late"])
    quick = ScriptedModel(["quick"])
    chain = [Candidate(DeadlinedModel(slow, first_token_s=2, between_tokens_s=2), 3), Candidate(quick)]
    assert await _text(FallbackModel(chain)) == "quick"
    assert len(slow.requests) == 1
    assert asyncio.get_running_loop().time() == pytest.approx(2)


@virtual_time
async def test_leaving_the_chain_early_closes_the_stream_at_its_bottom() -> None:
    inner = ScriptedModel(["one two three"])
    stream = FallbackModel([Candidate(DeadlinedModel(inner, first_token_s=2, between_tokens_s=2))]).stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert (inner.closed_early, inner.open_streams) == (1, 0)


@virtual_time
async def test_warming_and_closing_reach_every_candidate() -> None:
    models = [ScriptedModel(), ScriptedModel()]
    chain = FallbackModel([Candidate(model) for model in models])
    await chain.warm_up()
    await chain.aclose()
    assert all(model.warmed and model.closed for model in models)
    assert chain.name == "scripted"
