"""Re-framing gives back the stream, in frames of one size, whatever the chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.audio.frames import FRAME_BYTES, FRAME_MS, FRAME_SAMPLES, SAMPLE_RATE, SILENCE, Reframer

chunks = st.lists(st.binary(max_size=2000), max_size=20)


def test_a_frame_is_20_ms_of_16_khz():
    assert (SAMPLE_RATE, FRAME_MS, FRAME_SAMPLES, FRAME_BYTES) == (16000, 20, 320, 640)
    assert bytes(640) == SILENCE


@given(chunks, st.sampled_from([2, 320, 640, 1920]))
def test_frames_joined_are_the_chunks_joined(data: list[bytes], frame_bytes: int):
    reframer = Reframer(frame_bytes)
    frames = [frame for chunk in data for frame in reframer.push(chunk)]
    assert all(len(frame) == frame_bytes for frame in frames)
    sent = b"".join(data)
    assert b"".join(frames) == sent[: len(sent) // frame_bytes * frame_bytes]
    assert reframer.buffered == len(sent) % frame_bytes


@given(chunks)
def test_the_last_frame_is_padded_with_zeros_and_half_a_sample_is_dropped(data: list[bytes]):
    reframer = Reframer()
    frames = [frame for chunk in data for frame in reframer.push(chunk)]
    sent = b"".join(data)
    sent = sent[: len(sent) & ~1]
    last = reframer.flush()
    assert len(last) in (0, FRAME_BYTES)
    out = b"".join(frames) + last
    assert out.startswith(sent)
    assert not any(out[len(sent) :])
    assert len(out) - len(sent) < FRAME_BYTES
    assert reframer.buffered == 0
    assert reframer.flush() == b""


def test_a_whole_frame_passes_through_without_a_copy():
    frame = bytes(range(256)) * 2 + bytes(128)
    assert Reframer().push(frame)[0] is frame


def test_a_whole_frame_waits_its_turn_behind_what_is_buffered():
    reframer = Reframer(4)
    assert reframer.push(b"a") == []
    assert reframer.push(b"bcde") == [b"abcd"]
    assert reframer.push(b"fgh") == [b"efgh"]


def test_a_mutable_chunk_is_not_handed_on():
    chunk = bytearray(FRAME_BYTES)
    (frame,) = Reframer().push(chunk)  # type: ignore[arg-type]
    chunk[0] = 7
    assert frame == SILENCE


def test_less_than_a_frame_is_ever_kept():
    reframer = Reframer()
    assert len(reframer.push(bytes(1_000_001))) == 1562
    assert reframer.buffered == 1_000_001 % FRAME_BYTES


def test_reset_forgets():
    reframer = Reframer()
    reframer.push(b"xyz")
    reframer.reset()
    assert reframer.push(SILENCE) == [SILENCE]


@pytest.mark.parametrize("size", [0, -2, 641])
def test_a_frame_must_hold_whole_samples(size: int):
    with pytest.raises(ValueError, match=str(size)):
        Reframer(size)
