"""Dates and times as people say them, seen from Tuesday, 1 December 2026."""

from __future__ import annotations

from datetime import date, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.llm.embedded.dates import parse_date, parse_time

TODAY = date(2026, 12, 1)


@pytest.mark.parametrize(
    ("said", "iso"),
    [
        ("today", "2026-12-01"),
        ("tomorrow morning please", "2026-12-02"),
        ("the day after tomorrow", "2026-12-03"),
        ("Tuesday", "2026-12-08"),
        ("this Tuesday", "2026-12-01"),
        ("next Tuesday", "2026-12-08"),
        ("on Friday", "2026-12-04"),
        ("next Friday", "2026-12-11"),
        ("last Friday", "2026-11-27"),
        ("the 5th of March", "2027-03-05"),
        ("March 5th", "2027-03-05"),
        ("march the fifth", "2027-03-05"),
        ("the fifth of March twenty twenty seven", "2027-03-05"),
        ("twenty first of January", "2027-01-21"),
        ("January twenty first", "2027-01-21"),
        ("5 March 2028", "2028-03-05"),
        ("2026-12-24", "2026-12-24"),
        ("12/24/2026", "2026-12-24"),
        ("24/12/2026", "2026-12-24"),
        ("the fifth", "2026-12-05"),
        ("in three days", "2026-12-04"),
        ("in a couple of weeks", "2026-12-15"),
        ("in two months", "2027-02-01"),
        ("a week ago", "2026-11-24"),
        ("next week", "2026-12-08"),
        ("February 29th", "2028-02-29"),
        ("may 1st nineteen eighty four", "1984-05-01"),
    ],
)
def test_dates(said: str, iso: str) -> None:
    assert parse_date(said, TODAY) == date.fromisoformat(iso)


@pytest.mark.parametrize(
    ("said", "iso"),
    [("on Friday", "2026-11-27"), ("March 5th", "2026-03-05"), ("the fifth", "2026-11-05"), ("3/4/85", "1985-03-04")],
)
def test_a_date_of_something_past_lies_in_the_past(said: str, iso: str) -> None:
    assert parse_date(said, TODAY, past=True) == date.fromisoformat(iso)


@pytest.mark.parametrize(
    "said",
    [
        "I may go there",
        "march on",
        "it costs 2.5",
        "the second one",
        "February 30th",
        "on the 30th of February",
        "13/13",
        "",
    ],
)
def test_what_is_no_date(said: str) -> None:
    assert parse_date(said, TODAY) is None


@given(st.dates(date(2000, 1, 1), date(2099, 12, 31)))
def test_every_full_date_is_read_back(day: date) -> None:
    assert parse_date(f"{day:%B} {day.day}, {day.year}", TODAY) == day
    assert parse_date(f"the {day.day} of {day:%B} {day.year}", TODAY) == day
    assert parse_date(day.isoformat(), TODAY) == day


@given(st.sampled_from(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]), st.dates())
def test_a_bare_weekday_lies_within_the_coming_week(name: str, today: date) -> None:
    if today > date.max - timedelta(days=30):
        return
    found = parse_date(name, today)
    assert found is not None
    assert timedelta(days=1) <= found - today <= timedelta(days=7)
    assert f"{found:%A}".lower() == name


@pytest.mark.parametrize(
    ("said", "clock"),
    [
        ("3 pm", "15:00"),
        ("at 3 p.m.", "15:00"),
        ("3:30", "15:30"),
        ("half past three", "15:30"),
        ("quarter to four", "15:45"),
        ("twenty minutes past six", "18:20"),
        ("ten past nine", "09:10"),
        ("noon", "12:00"),
        ("midnight", "00:00"),
        ("at eight in the morning", "08:00"),
        ("seven o'clock in the evening", "19:00"),
        ("three thirty", "15:30"),
        ("four oh five pm", "16:05"),
        ("15:45", "15:45"),
        ("at 10", "10:00"),
        ("12 am", "00:00"),
    ],
)
def test_times(said: str, clock: str) -> None:
    assert parse_time(said) == time.fromisoformat(clock)


@pytest.mark.parametrize("said", ["I want two tickets", "", "25:99", "whenever"])
def test_what_is_no_time(said: str) -> None:
    assert parse_time(said) is None


@given(st.text(max_size=200))
def test_no_text_breaks_the_readers(text: str) -> None:
    parse_date(text, TODAY)
    parse_time(text)
