"""Numbers as people say them and as recognisers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words  # type: ignore[import-untyped]

from voice_agent.llm.embedded.numbers import MAX_DIGITS, parse_digits, parse_int, parse_money, parse_number


@pytest.mark.parametrize(
    ("said", "digits"),
    [
        ("four two seven nine", "4279"),
        ("My account number is 427-913.", "427913"),
        ("it's 4 2 7, 9 1 3", "427913"),
        ("double five six", "556"),
        ("oh seven nine double oh four", "079004"),
        ("triple seven", "777"),
        ("four, two, um, seven, nine", "4279"),
        ("nineteen eighty four", "1984"),
        ("(555) 012-3456", "5550123456"),
        ("forty two ninety one", "4291"),
        ("room 12, the code is nine nine one three", "9913"),
        ("007", "007"),
    ],
)
def test_digits_said_one_by_one_in_groups_or_doubled(said: str, digits: str) -> None:
    assert parse_digits(said) == digits


@pytest.mark.parametrize("said", ["I do not know", "", "my number", "the one"])
def test_without_enough_digits_there_are_none(said: str) -> None:
    assert parse_digits(said, least=2) is None


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("twenty-five", 25),
        ("a hundred and five", 105),
        ("one hundred and five", 105),
        ("two thousand and five", 2005),
        ("fifteen hundred", 1500),
        ("2 thousand", 2000),
        ("three million two hundred thousand", 3_200_000),
        ("two point five", 2.5),
        ("1,250.50", 1250.5),
        ("two and a half", 2.5),
        ("half", 0.5),
        ("minus five", -5),
        ("zero", 0),
        ("four two seven nine", 4279),
        ("for 3 people", 3),
    ],
)
def test_numbers_as_words_figures_and_both(said: str, number: float) -> None:
    assert parse_number(said) == number


@given(st.integers(0, 999_999_999))
def test_every_number_is_read_back_from_its_english_words(number: int) -> None:
    assert parse_number(num2words(number)) == number


@given(st.text(alphabet="0123456789", min_size=1, max_size=12))
def test_every_string_of_digits_is_read_back_when_spelled_out(digits: str) -> None:
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    assert parse_digits(" ".join(names[int(digit)] for digit in digits)) == digits


@pytest.mark.parametrize(
    ("said", "amount"),
    [
        ("$42.50", 42.5),
        ("forty two dollars and fifty cents", 42.5),
        ("forty two fifty", 42.5),
        ("42 bucks", 42),
        ("five cents", 0.05),
        ("12 euros 50", 12.5),
        ("£1,250", 1250),
        ("a hundred pounds", 100),
        ("two hundred", 200),
    ],
)
def test_money(said: str, amount: float) -> None:
    assert parse_money(said) == amount


def test_money_nobody_asked_for_needs_a_currency() -> None:
    assert parse_money("I have two phones", explicit=True) is None
    assert parse_money("pay 20 dollars", explicit=True) == 20


def test_a_fraction_is_no_whole_number() -> None:
    assert parse_int("two point five") is None


@given(st.text(max_size=300))
def test_no_text_breaks_the_readers_and_digits_are_bounded(text: str) -> None:
    parse_number(text)
    parse_money(text)
    assert len(parse_digits(text) or "") <= MAX_DIGITS


def test_endless_digits_are_cut() -> None:
    assert len(parse_digits("seven " * 5000) or "") == MAX_DIGITS
