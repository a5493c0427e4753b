from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.speech.utterance_windows import cut_at_pauses


def speech(seconds: float, pauses: list[float]) -> np.ndarray:
    """Noise with 300 ms of near silence at the given seconds."""
    rng = np.random.default_rng(5)
    pcm = rng.normal(0, 3000, int(seconds * SAMPLE_RATE)).astype(np.int16)
    for at in pauses:
        pcm[int(at * SAMPLE_RATE) : int((at + 0.3) * SAMPLE_RATE)] //= 100
    return pcm


def test_a_short_utterance_is_one_piece() -> None:
    pcm = speech(23.9, [])
    (piece,) = cut_at_pauses(pcm)
    assert piece is pcm


def test_a_minute_is_cut_inside_its_pauses() -> None:
    pauses = [5.0, 20.0, 33.0, 40.0, 52.0]
    pieces = cut_at_pauses(speech(60, pauses))
    ends = np.cumsum([len(piece) for piece in pieces]) / SAMPLE_RATE
    assert len(pieces) == 3
    for end in ends[:-1]:
        assert any(at <= end <= at + 0.3 for at in pauses), end


@settings(max_examples=30)
@given(st.floats(0, 120), st.floats(1, 30))
def test_the_pieces_joined_are_the_utterance_and_none_is_too_long(seconds: float, limit: float) -> None:
    pcm = speech(seconds, [])
    pieces = cut_at_pauses(pcm, limit)
    assert np.array_equal(np.concatenate(pieces), pcm)
    assert all(len(piece) <= limit * SAMPLE_RATE for piece in pieces)
    assert all(len(piece) for piece in pieces) or not len(pcm)
