import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.caller.playout import PREBUFFER_FRAMES, PlayoutBuffer

FRAME = 640


def tone(frames: float) -> bytes:
    return b"\x01\x02" * int(frames * FRAME / 2)


def play(buffer: PlayoutBuffer, frames: int) -> list[bool]:
    return [buffer.play().audible for _ in range(frames)]


def test_nothing_is_heard_before_anything_arrives():
    frame = PlayoutBuffer(16000).play()
    assert (frame.pcm, frame.audible, frame.arrived_at) == (bytes(FRAME), False, None)


def test_playout_starts_at_once_when_the_prebuffer_is_full():
    buffer = PlayoutBuffer(16000)
    buffer.push(tone(PREBUFFER_FRAMES), now=1.0)
    frame = buffer.play()
    assert frame.audible and frame.arrived_at == 1.0


def test_a_single_frame_waits_for_the_prebuffer_and_is_played_even_if_no_other_follows():
    buffer = PlayoutBuffer(16000)
    buffer.push(tone(1), now=0.0)
    assert play(buffer, 4) == [False, False, True, False]


def test_frames_that_come_late_by_less_than_the_prebuffer_leave_no_hole():
    buffer = PlayoutBuffer(16000)
    heard = []
    for tick in range(20):
        # Every fourth frame is late and comes together with the next.
        arriving = {0: 1, 1: 1, 2: 0, 3: 2}[tick % 4]
        buffer.push(tone(arriving), now=tick * 0.02)
        heard.append(buffer.play().audible)
    first = heard.index(True)
    assert first <= 2 and all(heard[first:])


def test_a_short_last_piece_is_heard_whole():
    buffer = PlayoutBuffer(16000)
    buffer.push(tone(1.5), now=0.0)
    frames = [buffer.play() for _ in range(6)]
    audible = [f.pcm for f in frames if f.audible]
    assert b"".join(audible).rstrip(b"\0") == tone(1.5)
    assert not buffer.audible_pending and buffer.queued_s == 0


def test_what_is_cleared_is_never_heard_and_the_next_reply_starts_with_a_prebuffer():
    buffer = PlayoutBuffer(16000)
    buffer.push(tone(10), now=0.0)
    play(buffer, 3)
    assert buffer.clear() == 7 * 0.02
    assert play(buffer, 5) == [False] * 5
    buffer.push(tone(1), now=1.0)
    assert play(buffer, 3) == [False, False, True]


def test_a_clear_in_the_middle_of_a_frame_leaves_no_remainder():
    buffer = PlayoutBuffer(16000)
    buffer.push(tone(2.5), now=0.0)
    play(buffer, 1)
    buffer.clear()
    buffer.push(b"\x07\x07" * 640, now=1.0)
    assert set(buffer.play().pcm) == {7}


def test_pending_audio_counts_only_when_it_is_audible():
    buffer = PlayoutBuffer(16000)
    buffer.push(bytes(FRAME * 5), now=0.0)
    assert not buffer.audible_pending and buffer.queued_s > 0
    buffer.push(tone(1), now=0.0)
    assert buffer.audible_pending


def test_an_agent_that_never_stops_sending_fills_a_bounded_queue_and_the_oldest_audio_goes():
    buffer = PlayoutBuffer(16000, max_queue_s=1.0)
    for _ in range(100):
        buffer.push(tone(5), now=0.0)
    assert buffer.queued_s <= 1.0
    assert buffer.overflowed_s == pytest.approx(100 * 5 * 0.02 - buffer.queued_s)


@given(st.lists(st.integers(0, 2000), max_size=30))
def test_all_that_arrives_is_heard_once_in_order_whatever_the_pieces(sizes):
    buffer, sent, heard = PlayoutBuffer(16000), b"", b""
    for size in sizes:
        piece = bytes((len(sent) + i) % 255 + 1 for i in range(size * 2))
        buffer.push(piece, now=0.0)
        sent += piece
    while buffer.queued_s:
        frame = buffer.play()
        assert len(frame.pcm) == FRAME
        heard += frame.pcm
    assert heard.strip(b"\0") == sent
