"""Dates and times of day, as people say them."""

from __future__ import annotations

import re

from voice_agent.speech.speakable.language import Language
from voice_agent.speech.speakable.traced import Edit, Rewrite, TracedText
from voice_agent.speech.speakable.words import keeps_stop

_ISO_DATE = re.compile(r"(?<![\w./-])(\d{4})-(\d{2})-(\d{2})(?:T(?=\d{2}:))?(?![\w/-])")
_NUMERIC_DATE = re.compile(r"(?<![\w./-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/-]|\.\d)")
_SHORT_DATE = re.compile(r"(?<![\w./])(\d{1,2})/(\d{1,2})(?![\w/]|[.,]\d)")
_LAST_WORD = re.compile(r"(\w+)[\s:]+$")
_YEAR_RANGE = re.compile(r"(?<![\w.,/$€£-])((?:1[1-9]|20)\d{2})(\s?[-–—]\s?| to )((?:1[1-9]|20)\d{2})(?![\w/]|[.,-]\d)")
_YEAR = re.compile(r"(?<![\w.,/$€£#-])((?:1[1-9]|20)\d{2})(?!\w|[.,:/-]\d)")
_DECADE = re.compile(r"(?<![\w.,])(?:(1[1-9]|20)|['’])(\d)0['’]?s\b")
_TIME = re.compile(
    r"(?<![\w.:,/])(\d{1,2})[:](\d{2})(?::(\d{2}))?(?![\d:])(?:\s?(a\.m\.|p\.m\.|[ap]\.?m\b))?(?!\w)", re.IGNORECASE
)
_HOUR = re.compile(r"(?<![\w.:,/$€£])(\d{1,2})\s?(a\.m\.|p\.m\.|[ap]m\b)", re.IGNORECASE)
_TIME_RANGE = re.compile(r"(?<=[\d.m])\s?[-–—]\s?(?=\d{1,2}(?::\d{2}|\s?[ap]\.?m\b))", re.IGNORECASE)


def say_dates(text: TracedText, language: Language) -> None:
    """Say dates, years and decades. Runs before `say_times`, with the ranges between them."""
    text.sub(_ISO_DATE, lambda match: _numeric(match, language, int(match[3]), int(match[2]), int(match[1])))
    text.sub(_NUMERIC_DATE, lambda match: _numeric_date(match, language))
    text.sub(_SHORT_DATE, lambda match: _short_date(match, language))
    month = "|".join(sorted(map(re.escape, _capitalised(language)), key=len, reverse=True))
    day = rf"(\d{{1,2}})(?:{language.ordinal_suffixes})?" if language.ordinal_suffixes else r"(\d{1,2})"
    month_day = re.compile(
        rf"(?<!\w)({month})\.?(\s+)({day})(?!\d|:|\s?[ap]\.?m)(?:(\s?[-–]\s?)(\d{{1,2}})(?!\d|:))?(,?\s+\d{{4}}\b)?"
    )
    day_month = re.compile(rf"(?<![\w.,/])({day})\.?(\s+(?:of\s+)?)({month})\b\.?(,?\s+\d{{4}}\b)?")
    month_year = re.compile(rf"(?<!\w)({month})\.?(,?\s+)(\d{{4}})\b")
    text.sub(month_day, lambda match: _month_day(match, language))
    text.sub(day_month, lambda match: _day_month(match, language))
    text.sub(month_year, lambda match: _month_year(match, language))
    text.sub(_DECADE, lambda match: _decade(match, language))
    text.sub(_YEAR_RANGE, lambda match: _year_range(match, language))
    text.sub(_YEAR, lambda match: _year(match, language))


def say_times(text: TracedText, language: Language) -> None:
    """Say times of day and ranges of them."""
    text.sub(_TIME_RANGE, lambda match: f" {language.words.to} ")
    text.sub(_TIME, lambda match: _time(match, language))
    text.sub(_HOUR, lambda match: _hour(match, language))


def _capitalised(language: Language) -> list[str]:
    # "may 5 people come in" is no date, "May 5" is one.
    return [name.capitalize() for name in language.month_names]


def _numeric(match: re.Match[str], language: Language, day: int, month: int, year: int | None) -> Rewrite:
    if not (1 <= day <= 31 and 1 <= month <= 12):
        return None
    spoken = f"{language.months[month - 1]} {language.day_of_month(day)}"
    after = " " if match[0].endswith("T") else ""
    return f"{spoken}, {language.year(year)}{after}" if year is not None else spoken


def _numeric_date(match: re.Match[str], language: Language) -> Rewrite:
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if len(match[4]) == 2:
        year += 2000 if year < 70 else 1900
    month_first = language.month_first and match[2] != "." and first <= 12
    day, month = (second, first) if month_first or second > 12 else (first, second)
    return _numeric(match, language, day, month, year)


def _short_date(match: re.Match[str], language: Language) -> Rewrite:
    before = _LAST_WORD.search(match.string, max(0, match.start() - 20), match.start())
    if before is None or before[1].lower() not in language.date_contexts:
        return None
    first, second = int(match[1]), int(match[2])
    day, month = (second, first) if (language.month_first and first <= 12) or second > 12 else (first, second)
    return _numeric(match, language, day, month, None)


def _trailing_year(match: re.Match[str], group: int, language: Language) -> list[Edit]:
    if match[group] is None:
        return []
    start = match.end(group) - 4
    return [Edit(match.start(group), start, ", "), Edit(start, match.end(group), language.year(int(match[group][-4:])))]


def _month_name(match: re.Match[str], group: int, language: Language, end: int) -> Edit:
    return Edit(match.start(group), end, language.months[language.month_names[match[group].lower()] - 1])


def _month_day(match: re.Match[str], language: Language) -> Rewrite:
    day, last = int(match[4]), int(match[6] or 0)
    if not 1 <= day <= 31 or last > 31:
        return None
    edits = [_month_name(match, 1, language, match.start(2))]
    edits.append(Edit(match.start(3), match.end(3), language.day_of_month(day)))
    if match[5] is not None:
        edits.append(Edit(match.start(5), match.end(5), f" {language.words.to} "))
        edits.append(Edit(match.start(6), match.end(6), language.day_of_month(last)))
    return edits + _trailing_year(match, 7, language)


def _day_month(match: re.Match[str], language: Language) -> Rewrite:
    day = int(match[2])
    if not 1 <= day <= 31:
        return None
    before = match.string[: match.start()].rstrip().lower()
    article, of = language.words.day_article, language.words.day_of
    spoken = language.day_of_month(day)
    if not before.endswith(article):
        spoken = f"{article} {spoken}"
    # What is said between belongs to the day: white space is no word that could be heard.
    edits = [Edit(match.start(1), match.start(3), spoken)]
    if not match[3].strip() and of:
        edits = [Edit(match.start(1), match.end(3), f"{spoken} {of} ")]
    # A stop after an abbreviated month goes, one that ends the sentence stays.
    edits.append(_month_name(match, 4, language, match.end(4) if match[5] is None else match.start(5)))
    return edits + _trailing_year(match, 5, language)


def _month_year(match: re.Match[str], language: Language) -> Rewrite:
    year = int(match[3])
    if not 1100 <= year <= 2199:
        return None
    return [
        _month_name(match, 1, language, match.start(2)),
        Edit(match.start(2), match.start(3), " "),
        Edit(match.start(3), match.end(3), language.year(year)),
    ]


def _decade(match: re.Match[str], language: Language) -> Rewrite:
    return None if match[2] in "01" else language.decade(int((match[1] or "") + match[2] + "0"))


def _year_range(match: re.Match[str], language: Language) -> Rewrite:
    return [
        Edit(match.start(1), match.end(1), language.year(int(match[1]))),
        Edit(match.start(2), match.end(2), f" {language.words.to} "),
        Edit(match.start(3), match.end(3), language.year(int(match[3]))),
    ]


def _year(match: re.Match[str], language: Language) -> Rewrite:
    before = re.search(r"([\w©]+)[\s(]*$", match.string[max(0, match.start() - 20) : match.start()])
    if before is None or before[1].lower() not in language.year_contexts:
        return None
    return language.year(int(match[1]))


def _suffix(written: str | None) -> str:
    return "" if written is None else written[0].lower() + "m"


def _stop(match: re.Match[str]) -> str:
    """The stop of "a.m." may be the sentence's own as well."""
    return "." if match[0].endswith(".") and keeps_stop(match.string, match.end(), "a.m.") else ""


def _time(match: re.Match[str], language: Language) -> Rewrite:
    hour, minute, second = int(match[1]), int(match[2]), match[3]
    if hour > 24 or minute > 59:
        return None
    # "09:00" is a clock of 24 hours even before noon.
    half = _suffix(match[4]) or ("am" if match[1].startswith("0") else "")
    spoken = language.clock(hour, minute, half)
    if second and int(second):
        spoken += f" {language.words.conjunction} {language.cardinal(int(second))} {language.words.seconds}"
    return spoken + _stop(match)


def _hour(match: re.Match[str], language: Language) -> Rewrite:
    hour = int(match[1])
    return language.clock(hour, 0, _suffix(match[2])) + _stop(match) if hour <= 24 else None
