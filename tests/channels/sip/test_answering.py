"""A person or a machine has answered our call: told by how they begin, without anybody waiting for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.channels.contract import tone
from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.channels.sip.answering import MAX_KEPT, Answering, WhoAnswered

FRAME_S = 0.02
SPEECH, SILENCE = tone(FRAME_S), bytes(len(tone(FRAME_S)))
ECHO = (np.frombuffer(SPEECH, "<i2") // 100).tobytes()
"""40 dB quieter than it was said."""
ABOUT = 0.05


def told(*said: tuple[bytes, float]) -> list[tuple[str, float]]:
    """Return what was told, and how long after the answer. ``said``: a frame, and for how many seconds it comes."""
    found: list[tuple[str, float]] = []
    now = 100.0
    answering = Answering(now, lambda who: found.append((who, round(now - 100.0, 2))))
    for frame, seconds in said:
        for _ in range(round(seconds / FRAME_S)):
            now += FRAME_S
            answering.push(frame, SAMPLE_RATE, now)
    return found


def test_a_few_words_and_then_waiting_are_a_persons() -> None:
    assert told((SILENCE, 0.6), (SPEECH, 0.5), (SILENCE, 3)) == [("human", pytest.approx(2.1, abs=ABOUT))]


def test_a_long_monologue_from_the_answer_on_is_a_machines() -> None:
    sentences = [(SPEECH, 2.0), (SILENCE, 0.6), (SPEECH, 3.0), (SILENCE, 5.0)]
    assert told((SILENCE, 0.5), *sentences) == [("machine", pytest.approx(4.5, abs=ABOUT))]


def test_silence_tells_nothing_and_what_is_said_after_the_greeting_is_no_monologue() -> None:
    assert told((SILENCE, 4), (SPEECH, 6)) == [("unknown", pytest.approx(3.0, abs=ABOUT))]


def test_a_click_and_the_echo_of_the_agent_are_no_words() -> None:
    clicked = told((SPEECH, 0.04), (SILENCE, 1.5), (SPEECH, 0.5), (SILENCE, 2))
    assert clicked == [("human", pytest.approx(3.04, abs=ABOUT))]
    assert told((ECHO, 5)) == [("unknown", pytest.approx(3.0, abs=ABOUT))]


@given(st.lists(st.tuples(st.sampled_from([SPEECH, SILENCE]), st.floats(0, 4)), max_size=8))
def test_it_is_told_once_at_most(said: list[tuple[bytes, float]]) -> None:
    assert len(told(*said)) <= 1


def test_what_is_known_is_kept_for_so_many_calls() -> None:
    noted: list[tuple[str, str]] = []
    who = WhoAnswered(lambda conversation, answer: noted.append((conversation, answer)))
    for number in range(MAX_KEPT + 1):
        assert who.of(f"call{number}") == ""
        who.listen(f"call{number}", f"c{number}", 0.0).push(SILENCE, SAMPLE_RATE, 9.0)
    assert (who.of("call0"), who.of("call1"), noted[0]) == ("", "unknown", ("c0", "unknown"))
