from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.channels.webrtc.pacer import FRAME_S, LEAD_S, MAX_FRAMES, PacedFrame, PacedText, Pacer

FRAME = bytes(640)


def taken(pacer: Pacer, now: float) -> list[PacedFrame | PacedText]:
    items = []
    while (item := pacer.take(now)) is not None:
        items.append(item)
    return items


def test_audio_in_real_time_leaves_at_once_and_without_gaps() -> None:
    pacer, times = Pacer(0), []
    for n in range(100):
        now = n * FRAME_S + (0.004 if n % 3 else 0)  # a loop is never quite on time
        pacer.add_audio(FRAME)
        times += [item.at_s for item in taken(pacer, now) if isinstance(item, PacedFrame)]
    assert times == pytest.approx([n * FRAME_S for n in range(100)])


def test_no_more_than_the_lead_is_sent_ahead() -> None:
    pacer = Pacer(10)
    for _ in range(50):
        pacer.add_audio(FRAME)
    assert len(taken(pacer, 10)) == round(LEAD_S / FRAME_S)
    assert pacer.wait_s(10) == pytest.approx(FRAME_S)
    assert len(taken(pacer, 10.05)) == 2


def test_speech_after_a_pause_begins_at_its_own_time() -> None:
    pacer = Pacer(0)
    pacer.add_audio(FRAME)
    assert taken(pacer, 5) == [PacedFrame(FRAME, 5, first=True)]
    pacer.add_audio(FRAME)
    assert taken(pacer, 5.02) == [PacedFrame(FRAME, pytest.approx(5.02), first=False)]


def test_a_clear_drops_audio_and_its_marks_and_keeps_messages() -> None:
    pacer = Pacer(0)
    for _ in range(20):
        pacer.add_audio(FRAME)
    pacer.add_text("a mark", mark=True)
    pacer.add_text("words")
    taken(pacer, 0)
    pacer.clear(0.01)
    assert (pacer.frames, pacer.plays_until) == (0, 0.01)
    assert taken(pacer, 0.01) == [PacedText("words")]


def test_a_mark_waits_until_the_audio_before_it_was_played() -> None:
    pacer = Pacer(0)
    pacer.add_audio(FRAME)
    pacer.add_text("said", mark=True)
    pacer.add_text("words")
    assert len(taken(pacer, 0)) == 1
    assert [item.text for item in taken(pacer, FRAME_S) if isinstance(item, PacedText)] == ["said", "words"]


def test_too_much_audio_loses_its_oldest_frames() -> None:
    pacer = Pacer(0)
    frames = [n.to_bytes(2, "little") * 320 for n in range(MAX_FRAMES + 2)]
    assert [pacer.add_audio(frame) for frame in frames] == [True] * MAX_FRAMES + [False] * 2
    first = pacer.take(0)
    assert isinstance(first, PacedFrame)
    assert first.pcm == frames[2]


@given(st.lists(st.tuples(st.floats(0, 0.3), st.sampled_from("fmtc")), max_size=80))
def test_frames_never_overlap_and_never_run_ahead(steps: list[tuple[float, str]]) -> None:
    pacer, now, last = Pacer(0), 0.0, -1.0
    for pause, what in steps:
        now += pause
        if what == "f":
            pacer.add_audio(FRAME)
        elif what == "c":
            pacer.clear(now)
            last = -1.0  # what was sent ahead is not called back
        else:
            pacer.add_text(what, mark=what == "m")
        for item in taken(pacer, now):
            if isinstance(item, PacedFrame):
                assert last + FRAME_S <= item.at_s + 1e-6 or last < 0
                assert item.at_s <= now + LEAD_S
                last = item.at_s
        assert (pacer.wait_s(now) is None) == (not pacer)
