"""Fragments of tool calls become complete calls."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.llm.assemble import MAX_ARGUMENT_CHARS, MAX_CALLS, ToolCallAssembler
from voice_agent.llm.protocol import ToolCall, ToolCallDelta


def _assemble(*deltas: ToolCallDelta) -> tuple[ToolCall, ...]:
    assembler = ToolCallAssembler()
    for delta in deltas:
        assembler.add(delta)
    return assembler.calls()


def test_fragments_of_one_call_are_joined() -> None:
    deltas = ToolCallDelta(0, "a1", "get", '{"x"'), ToolCallDelta(0, arguments=": 1}")
    assert _assemble(*deltas) == (ToolCall("a1", "get", '{"x": 1}'),)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers()), max_size=5), st.randoms(use_true_random=False))
def test_interleaved_fragments_find_their_call(arguments: list[dict[str, Any]], random: Any) -> None:
    queues = []
    for index, value in enumerate(arguments):
        text = json.dumps(value)
        cut = random.randint(0, len(text))
        queues.append(
            [
                ToolCallDelta(index, f"id{index}", f"tool{index}", text[:cut]),
                ToolCallDelta(index, None, None, text[cut:]),
            ]
        )
    deltas = []
    while any(queues):
        deltas.append(random.choice([queue for queue in queues if queue]).pop(0))
    calls = _assemble(*deltas)
    assert [json.loads(call.arguments) for call in calls] == arguments
    assert [call.name for call in calls] == [f"tool{i}" for i in range(len(arguments))]


def test_a_missing_or_repeated_id_is_replaced() -> None:
    deltas = ToolCallDelta(0, None, "a"), ToolCallDelta(1, "same", "b"), ToolCallDelta(2, "same", "c")
    ids = [call.id for call in _assemble(*deltas)]
    assert len(set(ids)) == 3
    assert ids[1] == "same"


def test_a_call_without_arguments_reads_as_an_empty_object_and_one_without_a_name_is_left_out() -> None:
    assert _assemble(ToolCallDelta(0, "x", "listen"), ToolCallDelta(1, "y", None, "{}")) == (
        ToolCall("x", "listen", "{}"),
    )


def test_an_endless_response_is_bounded() -> None:
    deltas = [ToolCallDelta(i, None, "t") for i in range(MAX_CALLS + 9)]
    deltas += [ToolCallDelta(0, arguments="x" * MAX_ARGUMENT_CHARS), ToolCallDelta(0, arguments="x")]
    calls = _assemble(*deltas)
    assert len(calls) == MAX_CALLS
    assert len(calls[0].arguments) == MAX_ARGUMENT_CHARS


def test_it_is_true_once_it_holds_a_call() -> None:
    assembler = ToolCallAssembler()
    assert not assembler
    assembler.add(ToolCallDelta(0, None, "t"))
    assert assembler


def test_a_call_that_was_cut_off_before_its_arguments_is_not_run_without_them() -> None:
    assembler = ToolCallAssembler()
    assembler.add(ToolCallDelta(0, "a", "first"))
    assembler.add(ToolCallDelta(1, "b", "second"))
    assert [call.arguments for call in assembler.calls()] == ["{}", "{}"]
    assert [call.arguments for call in assembler.calls(is_cut=True)] == ["{}", "{"]
