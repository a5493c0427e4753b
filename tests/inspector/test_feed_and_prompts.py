"""What is kept for viewers is bounded, and one that does not keep up is dropped."""

from __future__ import annotations

import pytest

from voice_agent.dialogue.model_call import ModelCallRecord
from voice_agent.inspector.feed import MAX_WAITING, LiveFeed, TooManyViewers
from voice_agent.inspector.prompts import MAX_CALLS, MAX_MESSAGE_CHARS, PromptLog
from voice_agent.llm.protocol import Message, ModelRequest


def _record(number: int, conversation: str = "c") -> dict[str, object]:
    return {"conversation_id": conversation, "sequence": number, "user": {"turn_id": "t", "text": "a secret"}}


async def test_a_viewer_learns_that_something_happened_and_not_what_was_said() -> None:
    feed = LiveFeed(2)
    with feed.watch("c") as viewer:
        feed.tell(_record(4))
        feed.tell(_record(5, "other"))
        assert await viewer.next(0.1) == {"conversation": "c", "sequence": 4, "kind": "user", "turn_id": "t"}
        assert await viewer.next(0.01) is None
    assert not feed.viewers and not viewer.is_open


async def test_a_viewer_that_does_not_keep_up_is_dropped_and_the_others_go_on() -> None:
    feed = LiveFeed(2)
    slow, quick = feed.watch(), feed.watch()
    for number in range(MAX_WAITING + 1):
        feed.tell(_record(number))
        assert await quick.next(0.1)
    assert (slow.is_open, slow.is_slow, quick.is_open) == (False, True, True)
    assert feed.viewers == {quick}


async def test_viewers_are_counted() -> None:
    feed = LiveFeed(1)
    viewer = feed.watch()
    with pytest.raises(TooManyViewers):
        feed.watch()
    viewer.close()
    feed.watch()
    feed.close()
    assert not feed.viewers


def _call(text: str, turn: str = "t") -> ModelCallRecord:
    return ModelCallRecord(turn, "turn", "model", ModelRequest([Message("system", text)]))


def test_prompts_are_bounded_per_conversation_and_over_all() -> None:
    log = PromptLog(max_chars=1000)
    for number in range(MAX_CALLS + 5):
        log.take("a", _call("x", f"t{number}"), "now")
    assert [call["turn_id"] for call in log.of("a")][:1] == ["t5"]
    assert len(log.of("a")) == MAX_CALLS
    log.take("b", _call("y" * 990), "now")
    assert len(log.of("a")) == 10
    log.take("c", _call("z" * 1000), "now")
    assert (log.of("a"), log.of("b"), len(log.of("c"))) == ([], [], 1)
    log.forget("c")
    log.take("d", _call("y" * 1000), "now")
    assert len(log.of("d")) == 1


def test_a_prompt_larger_than_all_there_is_room_for_is_not_kept() -> None:
    log = PromptLog(max_chars=10)
    log.take("a", _call("x" * 11), "now")
    assert log.of("a") == []


def test_a_long_message_is_shown_cut() -> None:
    log = PromptLog()
    log.take("a", _call("x" * (MAX_MESSAGE_CHARS + 1)), "now")
    assert len(log.of("a")[0]["messages"][0]["content"]) == MAX_MESSAGE_CHARS + 2
