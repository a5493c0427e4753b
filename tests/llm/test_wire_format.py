"""Characters that a provider cuts in half, and halves that must not reach it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.llm.protocol import Message, TextDelta, ToolCall
from voice_agent.llm.wire_format import ChunkReader, message_dict


def read(*texts: str) -> list[str]:
    reader, said = ChunkReader(), []
    for text in texts:
        chunk: dict[str, Any] = {"choices": [{"delta": {"content": text}}]}
        said += [event.text for event in reader.read(chunk) if isinstance(event, TextDelta)]
    return said


def test_a_character_cut_between_two_chunks_comes_whole() -> None:
    assert read("Hi \ud83d", "\ude00 there") == ["Hi ", "😀 there"]
    assert read("\ud83d", "\ude00") == ["😀"]


def test_half_a_character_is_replaced() -> None:
    assert read("Hi \ude00.", "a \ud83d", " b", "\ud83d") == ["Hi \ufffd.", "a ", "\ufffd b"]


@given(st.lists(st.text(st.sampled_from("ab😀\ud83d\ude00"), max_size=4), max_size=6))
def test_what_is_read_can_always_be_sent(texts: list[str]) -> None:
    said = "".join(read(*texts))
    assert said.encode().decode() == said


def test_no_half_reaches_a_provider() -> None:
    calls = (ToolCall("1", "look", '{"a": "\ud800"}'),)
    for message in (
        Message("user", "what \ud800"),
        Message("assistant", tool_calls=calls),
        Message("tool", '"\udfff"'),
    ):
        assert json.dumps(message_dict(message), ensure_ascii=False).encode()
