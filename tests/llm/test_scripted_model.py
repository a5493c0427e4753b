"""The scripted model behaves like a model as far as its users can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.virtual_time import virtual_time
from voice_agent.llm.protocol import Finished, Message, ModelError, ModelEvent, ModelRequest, TextDelta, ToolCallDelta

REQUEST = ModelRequest([Message("user", "hello")])


async def _all(model: ScriptedModel) -> Sequence[ModelEvent]:
    return [event async for event in model.stream(REQUEST)]


@virtual_time
async def test_text_is_streamed_word_by_word_and_adds_up() -> None:
    *words, end = await _all(ScriptedModel(["Hello there, caller. "]))
    assert [w.text for w in words if isinstance(w, TextDelta)] == ["Hello", " there,", " caller. "]
    assert end == Finished("stop")


@virtual_time
async def test_tool_calls_and_text_come_in_the_order_of_the_script() -> None:
    events = await _all(ScriptedModel([["Sure.", tool_call("a", x=1), tool_call("b")]]))
    assert events == [
        TextDelta("Sure."),
        ToolCallDelta(0, "call_0", "a", '{"x": 1}'),
        ToolCallDelta(1, "call_1", "b", "{}"),
        Finished("tool_calls"),
    ]


@virtual_time
async def test_pauses_are_taken_from_the_loop_clock() -> None:
    model = ScriptedModel([["one ", 2.0, "two"]], first_token_s=1.0, token_s=0.5)
    await _all(model)
    record = model.streams[0]
    assert record.started_at == 0
    # 1.0 before the first word, 2.0 of pause, 0.5 before the second word and before the end.
    assert record.ended_at == pytest.approx(4.0)


@virtual_time
async def test_an_error_comes_where_the_script_has_it() -> None:
    model = ScriptedModel([["half", ModelError("gone")]])
    seen: list[ModelEvent] = []
    with pytest.raises(ModelError, match="gone"):
        async for event in model.stream(REQUEST):
            seen.append(event)
    assert seen == [TextDelta("half")]
    assert not model.streams[0].closed_early


@virtual_time
async def test_a_cancelled_stream_is_recorded_as_closed_early() -> None:
    model = ScriptedModel(["never heard"], first_token_s=9)
    task = asyncio.ensure_future(_all(model))
    await asyncio.sleep(1)
    assert model.open_streams == 1
    task.cancel()
    await asyncio.wait([task])
    assert (model.closed_early, model.open_streams) == (1, 0)


@virtual_time
async def test_a_stream_left_by_its_reader_is_recorded_as_closed_early() -> None:
    model = ScriptedModel(["one two three"])
    stream = model.stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert model.closed_early == 1
    assert model.streams[0].sent == [TextDelta("one")]


@virtual_time
async def test_a_call_beyond_the_script_fails_the_test_unless_a_default_is_given() -> None:
    with pytest.raises(AssertionError, match="beyond the script"):
        await _all(ScriptedModel())
    assert (await _all(ScriptedModel(then=lambda request: request.messages[-1].content)))[0] == TextDelta("hello")
