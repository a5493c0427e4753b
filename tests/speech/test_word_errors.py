from __future__ import annotations

import pytest

from tests.support.word_errors import normalized, word_errors


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Press 5.", "press five"),
        ("the 10th of May", "The tenth of May!"),
        ("1,000 calls", "one thousand calls"),
        ("touch-tone", "touch tone"),
        ("You’re welcome", "you're welcome"),
        ("Mr. Dashwood", "mister Dashwood"),
        ("press * or #", "press star or pound"),
    ],
)
def test_spellings_of_the_same_words_are_equal(one: str, other: str) -> None:
    assert normalized(one) == normalized(other)


def test_different_words_stay_different() -> None:
    assert normalized("fifteen") != normalized("50")
    assert normalized("") == []


@pytest.mark.parametrize(
    ("reference", "heard", "errors"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1),
        ("a b c", "a c", 1),
        ("a c", "a b c", 1),
        ("a b c", "", 3),
        ("", "a b", 2),
        ("a b c d", "b c d e", 2),
    ],
)
def test_errors_are_the_least_edits(reference: str, heard: str, errors: int) -> None:
    assert word_errors(reference.split(), heard.split()) == errors
