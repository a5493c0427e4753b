"""A hum has no words. What the recogniser makes of it is not what was said."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from voice_agent.call.hum import HUM, is_hum, words_or_hum
from voice_agent.speech.protocols import Transcript

RATE = 16000
Pcm = NDArray[np.int16]


def _vowel(formants: tuple[tuple[float, float], ...], pitch: float = 110.0, seconds: float = 0.3) -> Pcm:
    """Harmonics of a pitch, weighted by resonances of 90 Hz width, between two stretches of room noise.

    Args:
        formants: (frequency, amplitude) pairs.
    """
    at = np.arange(int(seconds * RATE)) / RATE
    wave = np.zeros(len(at))
    for hz in np.arange(pitch, 4000, pitch):
        weight = sum(level / (1 + ((hz - centre) / 90) ** 2) for centre, level in formants)
        wave += weight * np.sin(2 * np.pi * hz * at)
    room = np.random.default_rng(1).normal(0, 12, RATE // 3)
    return np.concatenate([room, wave / np.abs(wave).max() * 8000, room]).astype(np.int16)


CLOSED_LIPS = ((250.0, 1.0), (1000.0, 0.1), (2200.0, 0.05))
OPEN = {
    "a": ((750.0, 1.0), (1200.0, 0.7), (2500.0, 0.2)),
    "e": ((550.0, 1.0), (1800.0, 0.5), (2500.0, 0.3)),
    "o": ((520.0, 1.0), (900.0, 0.8), (2400.0, 0.1)),
}


@pytest.mark.parametrize("pitch", [90.0, 120.0, 200.0])
def test_closed_lips_are_told_from_open_vowels(pitch: float) -> None:
    assert is_hum(_vowel(CLOSED_LIPS, pitch))
    for name, formants in OPEN.items():
        assert not is_hum(_vowel(formants, pitch)), name


def test_what_is_too_short_too_long_or_silent_is_no_hum() -> None:
    assert not is_hum(np.zeros(100, np.int16))
    assert not is_hum(np.zeros(RATE, np.int16))
    assert not is_hum(_vowel(CLOSED_LIPS, seconds=3.0))


def _heard(text: str, certainty: float, *, accepted: bool = True) -> Transcript:
    return Transcript(text, 0.9, 0.2, certainty, accepted)


def test_doubtful_words_of_a_hum_are_a_hum() -> None:
    hum = _vowel(CLOSED_LIPS)
    assert words_or_hum(_heard("And then make them.", -0.85), hum) == HUM
    assert words_or_hum(_heard("M.", -1.3, accepted=False), hum) == HUM


def test_words_that_are_certain_or_stop_are_words_however_they_sound() -> None:
    hum = _vowel(CLOSED_LIPS)
    assert words_or_hum(_heard("When will you move?", -0.3), hum) == "When will you move?"
    assert words_or_hum(_heard("No.", -0.7), hum) == "No."


def test_doubtful_words_with_open_vowels_are_words_if_they_are_credible() -> None:
    assert words_or_hum(_heard("Human please.", -0.9), _vowel(OPEN["a"])) == "Human please."
    assert words_or_hum(_heard("Thanks for watching!", -1.4, accepted=False), _vowel(OPEN["a"])) == ""


def test_a_recogniser_that_is_unsure_of_uh_huh_is_believed() -> None:
    assert words_or_hum(_heard("Uh.", -1.1, accepted=False), _vowel(OPEN["a"])) == "Uh."
    assert words_or_hum(_heard(".", -1.6, accepted=False), _vowel(OPEN["a"])) == ""


def test_what_was_a_hum_so_far_stays_one_until_the_words_are_certain() -> None:
    hum = _vowel(CLOSED_LIPS)
    assert words_or_hum(_heard("And then make it.", -0.51), hum) == "And then make it."
    assert words_or_hum(_heard("And then make it.", -0.51), hum, so_far=HUM) == HUM
    assert words_or_hum(_heard("When will you move?", -0.3), hum, so_far=HUM) == "When will you move?"
