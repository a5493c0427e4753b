"""Digits are counted as they are said and as they are written."""

from __future__ import annotations

import pytest

from voice_agent.call.spoken_digits import DigitRuns, digit_runs


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("My number is one two three four five six.", 6),
        ("It's 1-2-3-4-5-6.", 6),
        ("123 456", 6),
        ("oh double five, triple seven", 6),
        ("twelve thirty four fifty six", 6),
        ("twenty one", 2),
        ("four two seven, um, and then zero zero one", 6),
        ("at 3:30", 0),
        ("I do not know.", 0),
    ],
)
def test_the_digits_at_the_end_are_counted(text: str, digits: int) -> None:
    assert digit_runs(text).last == digits


def test_digits_that_other_words_follow_are_no_group_at_the_end() -> None:
    assert digit_runs("123456, please") == DigitRuns(longest=6, last=0)
