"""Dates and times as people say them: "next Tuesday", "the 5th of March", "half past three".

Conventions, where English leaves it open:

* A bare weekday is the next one after today. "next Tuesday" is the Tuesday of next week (weeks
  begin on Monday), "this Tuesday" the first from today on, "last Tuesday" the one before today.
* A date without a year is the next such date, or the last one with ``past=True``.
* Dates in figures are month first, unless that is impossible ("25/3" is 25 March).
* Hours 1 to 6 without morning or evening are in the afternoon; hours 7 to 12 are as said.
"""

from __future__ import annotations

import re
from datetime import date, time, timedelta

from voice_agent.llm.embedded.numbers import MAX_TEXT, number_runs

_WEEKDAYS = {
    name: index
    for index, names in enumerate(
        ["monday mon", "tuesday tues tue", "wednesday wed", "thursday thurs thu", "friday fri", "saturday", "sunday"]
    )
    for name in names.split()
}
_MONTH_NAMES = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|"
    "september sept sep|october oct|november nov|december dec"
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()}
_ORDINAL_NAMES = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_NAMES.split(), 1)} | {"thirtieth": 30}
# "the second one" and "the first time" are no days; "the second, please" is.
_AFTER_A_DAY = frozenset(["", "please", "at", "in", "if", "or", "and", "is", "would", "works", "then", "thanks"])
_SPANS = {"day": 1, "days": 1, "week": 7, "weeks": 7, "fortnight": 14}
_MORNING = frozenset(["am", "morning"])
_LATER = frozenset(["pm", "afternoon", "evening", "night", "tonight"])


def parse_date(text: str, today: date, *, past: bool = False) -> date | None:
    """Return the first date named in ``text``, or None. ``past`` prefers dates before ``today``."""
    text = text[:MAX_TEXT].lower()
    return _in_figures(text, today, past) or _in_words(_words(text), today, past)


def _in_figures(text: str, today: date, past: bool) -> date | None:
    if found := re.search(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b", text):
        return _valid(*map(int, found.groups()))
    found = re.search(r"\b(\d{1,2})[/.](\d{1,2})(?:[/.](\d{4}|\d{2}))?\b(?![.:]\d)", text)
    if found is None:
        return None
    month, day = int(found[1]), int(found[2])
    if month > 12:
        month, day = day, month
    if not found[3]:
        # "2.5" is a number; only a slash makes two figures a date.
        return _nearest(month, day, today, past) if "/" in found[0] else None
    year = int(found[3])
    return _valid(year if year > 99 else _century(year, today, past), month, day)


def _in_words(words: list[str], today: date, past: bool) -> date | None:
    joined = " ".join(words)
    if "day after tomorrow" in joined:
        return today + timedelta(days=2)
    if "day before yesterday" in joined:
        return today - timedelta(days=2)
    for position in range(len(words)):
        found = (
            _relative(words, position, today)
            or _month_day(words, position, today, past)
            or _weekday(words, position, today, past)
        )
        if found is not None:
            return found
    return _day_of_month(words, today, past)


def _relative(words: list[str], position: int, today: date) -> date | None:
    word = words[position]
    fixed = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
    if word in fixed:
        return today + timedelta(days=fixed[word])
    following = words[position + 1] if position + 1 < len(words) else ""
    if word in {"next", "last"} and following in {"week", "month", "year"}:
        return _shift(today, 1 if word == "next" else -1, following)
    amount = _amount(words, position)
    if amount is None:
        return None
    count, after = amount
    unit = words[after] if after < len(words) else ""
    if unit.rstrip("s") not in {"day", "week", "fortnight", "month", "year"}:
        return None
    rest = words[after + 1 : after + 3]
    if rest[:1] == ["ago"]:
        return _shift(today, -count, unit)
    if rest == ["from", "now"] or (position and words[position - 1] == "in"):
        return _shift(today, count, unit)
    return None


def _amount(words: list[str], position: int) -> tuple[int, int] | None:
    """Return a count and the position after it: "3", "twenty one", "a", "a couple of"."""
    if words[position] in {"a", "an", "one"}:
        after = position + 1
        if words[after : after + 2] == ["couple", "of"]:
            return 2, after + 2
        return 1, after
    runs = [run for run in number_runs(words[position : position + 4]) if run.start == 0]
    if not runs or runs[0].fraction or len(runs[0].digits) > 3:
        return None
    return int(runs[0].digits), position + runs[0].end


def _month_day(words: list[str], position: int, today: date, past: bool) -> date | None:
    month = _MONTHS.get(words[position])
    if month is None:
        return None
    # "may" and "march" are verbs too: they count as months only beside a day. The day before the
    # month goes first, or "the fifth of March twenty twenty seven" would be the 20th.
    before = _day_ending(words, position - 1 - (position > 0 and words[position - 1] == "of"))
    after = _day(words, position + 1 + (words[position + 1 : position + 2] == ["the"]))
    if before is not None:
        day, end = before, position + 1
    elif after is not None:
        day, end = after
    else:
        return None
    year = _year(words, end)
    return _valid(year, month, day) if year else _nearest(month, day, today, past)


def _day(words: list[str], position: int) -> tuple[int, int] | None:
    """Return the day of month that starts at ``position``, and the position after it."""
    if position >= len(words):
        return None
    word = words[position]
    following = words[position + 1] if position + 1 < len(words) else ""
    if word in {"twenty", "thirty"} and following in _ORDINALS and _ORDINALS[following] < 10:
        return (20 if word == "twenty" else 30) + _ORDINALS[following], position + 2
    if word in _ORDINALS:
        return _ORDINALS[word], position + 1
    if found := re.fullmatch(r"(\d{1,2})(st|nd|rd|th)?", word):
        return (int(found[1]), position + 1) if 1 <= int(found[1]) <= 31 else None
    run = next((run for run in number_runs(words[position : position + 2]) if run.start == 0), None)
    if run is None or run.fraction or not 1 <= int(run.chunks[0]) <= 31:
        return None
    width = run.end if len(run.chunks) == 1 else 1
    return int(run.chunks[0]), position + width


def _day_ending(words: list[str], last: int) -> int | None:
    for start in (last - 1, last):
        if start >= 0 and (found := _day(words, start)) and found[1] == last + 1:
            return found[0]
    return None


def _year(words: list[str], position: int) -> int | None:
    run = next((run for run in number_runs(words[position : position + 5]) if run.start == 0), None)
    if run is None or not re.fullmatch(r"(19|20)\d\d", run.digits):
        return None
    return int(run.digits)


def _weekday(words: list[str], position: int, today: date, past: bool) -> date | None:
    weekday = _WEEKDAYS.get(words[position])
    if weekday is None:
        return None
    before = words[position - 1] if position else ""
    ahead = (weekday - today.weekday()) % 7
    if before == "this":
        return today + timedelta(days=ahead)
    if before == "next":
        return today + timedelta(days=7 - today.weekday() + weekday)
    if before == "last" or past:
        return today - timedelta(days=(today.weekday() - weekday) % 7 or 7)
    return today + timedelta(days=ahead or 7)


def _day_of_month(words: list[str], today: date, past: bool) -> date | None:
    """Read "the fifth" or "on the 21st": a bare ordinal after "the"."""
    for position, word in enumerate(words[:-1]):
        if word != "the" or not (found := _day(words, position + 1)):
            continue
        day, end = found
        is_ordinal = words[end - 1] in _ORDINALS or words[end - 1][-2:] in {"st", "nd", "rd", "th"}
        if is_ordinal and (words[end] if end < len(words) else "") in _AFTER_A_DAY:
            step = -1 if past else 1
            for months in range(13):
                month = today.month - 1 + step * months
                candidate = _valid(today.year + month // 12, month % 12 + 1, day)
                if candidate is not None and (candidate <= today if past else candidate >= today):
                    return candidate
    return None


def _shift(today: date, count: int, unit: str) -> date | None:
    unit = unit.rstrip("s")
    try:
        if unit in _SPANS:
            return today + timedelta(days=count * _SPANS[unit])
        months = today.month - 1 + count * (12 if unit == "year" else 1)
        year, month = today.year + months // 12, months % 12 + 1
        return next(day for back in range(4) if (day := _valid(year, month, today.day - back)))
    except (OverflowError, StopIteration):
        return None


def _nearest(month: int, day: int, today: date, past: bool) -> date | None:
    """Return the next such day, or the last one with ``past``. A 29 February may be years away."""
    years = range(today.year, today.year - 9, -1) if past else range(today.year, today.year + 9)
    for year in years:
        found = _valid(year, month, day)
        if found is not None and (found <= today if past else found >= today):
            return found
    return None


def _century(year: int, today: date, past: bool) -> int:
    full = today.year // 100 * 100 + year
    return full - 100 if past and full > today.year else full


def _valid(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _words(text: str) -> list[str]:
    return re.findall(r"\d{1,2}(?:st|nd|rd|th)\b|\d+:\d\d|\d+|[a-z]+(?:'[a-z]+)?", text.replace(".", ""))


def parse_time(text: str) -> time | None:
    """Return the first time of day named in ``text``, or None."""
    words = _words(re.sub(r"\b([ap])\.? ?m\b\.?", r"\1m", re.sub(r"(\d)\s*([ap])\.?m\b", r"\1 \2m", text.lower())))
    if "noon" in words or "midday" in words:
        return time(12)
    if "midnight" in words:
        return time(0)
    for position in range(len(words)):
        found = _clock(words, position)
        if found is not None:
            return _with_part_of_day(*found, words)
    return None


def _clock(words: list[str], position: int) -> tuple[int, int] | None:
    word = words[position]
    if found := re.fullmatch(r"(\d{1,2}):(\d\d)", word):
        return int(found[1]), int(found[2])
    if word in {"past", "after", "to", "before"} and position:
        hour = _small(words, position + 1)
        before = words[position - 1 if words[position - 1] != "minutes" else position - 2]
        minutes = {"half": 30, "quarter": 15}.get(before) or _small([before], 0)
        if hour is None or not minutes:
            return None
        return (hour, minutes) if word in {"past", "after"} else ((hour - 1) % 24, 60 - minutes)
    following = words[position + 1] if position + 1 < len(words) else ""
    hour = _small(words, position)
    if hour is None or (position + 1 < len(words) and following in {"past", "to", "after", "before", "minutes"}):
        return None
    runs = [run for run in number_runs(words[position : position + 4]) if run.start == 0]
    if runs and len(runs[0].chunks) == 2 and len(runs[0].chunks[1]) == 2:
        return int(runs[0].chunks[0]), int(runs[0].chunks[1])
    if runs and len(runs[0].chunks) == 3 and runs[0].chunks[1] == "0":
        return int(runs[0].chunks[0]), int(runs[0].chunks[2])
    said_as_time = following in _MORNING | _LATER | {"o'clock", "oclock", "in", "at"}
    if said_as_time or (position and words[position - 1] in {"at", "around", "about", "by"}) or len(words) == 1:
        return hour, 0
    return None


def _small(words: list[str], position: int) -> int | None:
    if position >= len(words):
        return None
    run = next((run for run in number_runs(words[position : position + 1]) if run.start == 0), None)
    return int(run.digits) if run and not run.fraction and len(run.digits) <= 2 else None


def _with_part_of_day(hour: int, minute: int, words: list[str]) -> time | None:
    if not (0 <= hour <= 23 and 0 <= minute <= 59):
        return None
    said = set(words)
    if said & _MORNING:
        hour %= 12
    elif (said & _LATER and hour < 12) or 1 <= hour <= 6:
        hour += 12
    return time(hour, minute)
