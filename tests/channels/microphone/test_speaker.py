from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice_agent.channels.microphone.speaker import MAX_AUDIO_S, PREBUFFER_S, SpeakerQueue

RATE = 16000
BLOCK = 160


def samples(seconds: float) -> bytes:
    return b"\1\1" * round(seconds * RATE)


def test_a_little_is_gathered_before_sound_begins() -> None:
    queue = SpeakerQueue(RATE)
    queue.push(samples(0.02))
    assert queue.pull(BLOCK)[0] == bytes(2 * BLOCK)
    queue.push(samples(0.02))
    assert queue.pull(BLOCK)[0] == samples(0.01)


def test_a_sound_shorter_than_that_is_played_when_nothing_follows() -> None:
    queue = SpeakerQueue(RATE)
    queue.push(samples(0.01))
    pulled = [queue.pull(BLOCK)[0] for _ in range(8)]
    assert samples(0.01) in pulled
    assert pulled.index(samples(0.01)) <= round(PREBUFFER_S / 0.01) + 1


def test_marks_are_told_with_their_place_when_the_audio_before_them_is_pulled() -> None:
    queue = SpeakerQueue(RATE)
    queue.push(samples(0.045))
    queue.mark("a")
    queue.push(samples(0.02))
    queue.mark("b")
    marks = [queue.pull(BLOCK)[1] for _ in range(8)]
    assert marks[4] == [("a", 0.005)]
    assert [name for told in marks for name, _ in told] == ["a", "b"]


def test_a_clear_drops_audio_and_marks() -> None:
    queue = SpeakerQueue(RATE)
    queue.push(samples(1.0))
    queue.mark("a")
    queue.clear()
    assert queue.pull(BLOCK) == (bytes(2 * BLOCK), [])


def test_a_speaker_that_does_not_pull_loses_the_oldest_audio() -> None:
    queue = SpeakerQueue(RATE)
    for _ in range(200):
        queue.push(samples(0.02))
        queue.mark("m")
    assert queue.queued_s <= MAX_AUDIO_S
    assert queue.dropped_s > 1.9


@given(pushed=st.lists(st.integers(0, 900), max_size=30), pulled=st.lists(st.integers(1, 700), max_size=60))
def test_what_is_pulled_is_what_was_pushed_in_order(pushed: list[int], pulled: list[int]) -> None:
    queue, said, heard = SpeakerQueue(RATE), b"", b""
    for number, count in enumerate(pushed):
        pcm = (number + 1).to_bytes(2, "little") * count
        queue.push(pcm)
        said += pcm
    for count in pulled:
        pcm, _ = queue.pull(count)
        assert len(pcm) == 2 * count
        heard += pcm
    sounds = b"".join(heard[at : at + 2] for at in range(0, len(heard), 2) if heard[at : at + 2] != b"\0\0")
    assert said.startswith(sounds)
