from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.channels.outbox import MAX_FRAMES, MAX_MESSAGES, Outbox


def emptied(outbox: Outbox) -> list[Any]:
    taken = []
    while outbox:
        item = outbox.take()
        taken.append(item.get("bytes", item.get("text", item.get("code"))))
    return taken


def test_audio_and_messages_leave_in_the_order_they_came() -> None:
    outbox = Outbox()
    outbox.add_audio(b"1")
    outbox.add("a")
    outbox.add_audio(b"2")
    outbox.add_close(1000)
    assert outbox.frames == 2
    assert emptied(outbox) == [b"1", "a", b"2", 1000]
    assert outbox.frames == 0


def test_the_oldest_audio_goes_and_no_message_with_it() -> None:
    outbox = Outbox()
    outbox.add("first")
    kept = [outbox.add_audio(number.to_bytes(2, "big")) for number in range(MAX_FRAMES + 3)]
    assert kept == [True] * MAX_FRAMES + [False] * 3
    taken = emptied(outbox)
    assert taken[0] == "first"
    assert taken[1] == (3).to_bytes(2, "big")
    assert len(taken) == 1 + MAX_FRAMES


def test_clear_goes_first_and_takes_audio_and_marks_with_it() -> None:
    outbox = Outbox()
    outbox.add("words")
    outbox.add_audio(b"1")
    outbox.add("mark", mark=True)
    outbox.clear(["clear"])
    outbox.add_audio(b"2")
    first, *rest = emptied(outbox)
    assert first == "clear"
    assert rest == ["words", b"2"]


@given(st.lists(st.sampled_from(["audio", "text", "mark", "clear", "take"]), max_size=300))
def test_the_count_of_frames_is_always_right(steps: list[str]) -> None:
    outbox = Outbox()
    for step in steps:
        match step:
            case "audio":
                outbox.add_audio(b"x")
            case "clear":
                outbox.clear(["clear"])
            case "take" if outbox:
                outbox.take()
            case "text" | "mark":
                outbox.add(step, mark=step == "mark")
    frames = outbox.frames
    assert frames == sum(item == b"x" for item in emptied(outbox))


def test_it_says_when_no_message_fits_any_more() -> None:
    outbox = Outbox()
    for _ in range(MAX_MESSAGES):
        assert not outbox.is_full
        outbox.add("x")
    assert outbox.is_full
