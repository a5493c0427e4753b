"""Each sentence has the same short lead and a pause by its mark, and its phonemes still add up to its samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.alignment import Phoneme
from voice_agent.speech.silence import LEAD_S, PAUSE_S, PAUSES_S, set_silence

RATE = 22_050


def sentence(before_s: float, sound_s: float, after_s: float) -> np.ndarray:
    sound = 0.5 * np.sin(np.arange(round(sound_s * RATE)) * 0.2)
    silence = [np.zeros(round(seconds * RATE)) for seconds in (before_s, after_s)]
    return np.concatenate([silence[0], sound, silence[1]]).astype(np.float32)


def phonemes_for(samples: int, count: int) -> list[Phoneme]:
    edges = np.linspace(0, samples, count + 1).astype(int)
    return [Phoneme("a", int(length)) for length in np.diff(edges)]


@pytest.mark.parametrize("mark", [*PAUSES_S, ""])
@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.5])
def test_silence_is_cut_or_added_to_what_the_mark_asks_for(mark: str, after_s: float) -> None:
    done = set_silence(sentence(0.06, 0.4, after_s), None, mark, RATE)
    expected = LEAD_S + 0.4 + PAUSES_S.get(mark, PAUSE_S)
    assert len(done.samples) / RATE == pytest.approx(expected, abs=0.012)


def test_a_sound_that_begins_at_once_is_not_cut() -> None:
    audio = sentence(0, 0.4, 0.2)
    done = set_silence(audio, None, ".", RATE)
    assert np.array_equal(done.samples[:1000], audio[:1000])


def test_all_silence_is_kept_as_it_is_with_its_pause() -> None:
    audio = np.zeros(RATE // 10, np.float32)
    assert len(set_silence(audio, None, "", RATE).samples) == len(audio) + round(PAUSE_S * RATE)


@given(
    st.floats(0, 0.3), st.floats(0.02, 0.5), st.floats(0, 0.5), st.integers(1, 30), st.sampled_from([*PAUSES_S, "a"])
)
def test_phonemes_always_add_up_to_the_samples(
    before_s: float, sound_s: float, after_s: float, count: int, mark: str
) -> None:
    audio = sentence(before_s, sound_s, after_s)
    done = set_silence(audio, phonemes_for(len(audio), count), mark, RATE)
    assert done.phonemes is not None
    assert len(done.phonemes) == count
    assert sum(phoneme.samples for phoneme in done.phonemes) == len(done.samples)
    assert all(phoneme.samples >= 0 for phoneme in done.phonemes)
