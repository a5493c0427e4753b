"""What a language must tell the rules of speakable text. One instance per language, in a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Names = tuple[str, str]
"""What is said for one and for many."""


def word_list(text: str) -> tuple[str, ...]:
    """Split at white space; an underscore stands for a space inside an entry."""
    return tuple(word.replace("_", " ") for word in text.split())


def table(text: str) -> dict[str, str]:
    """Parse ``key = value; key = value; …``, over as many lines as it takes."""
    entries = (entry.partition(" = ") for entry in text.split(";"))
    return {key.strip(): value.strip() for key, _, value in entries}


def pair(text: str) -> Names:
    """Parse ``one, many``."""
    one, many = text.split(", ")
    return one, many


@dataclass(frozen=True, slots=True)
class Currency:
    """Names of a currency and of its hundredth, if one is said."""

    unit: Names
    hundredth: Names | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """Small words that stand for signs or join numbers."""

    to: str
    conjunction: str
    point: str
    minus: str
    plus: str
    percent: str
    per: str
    by: str
    times: str
    out_of: str
    foot: str
    number: str
    version: str
    at: str
    dot: str
    slash: str
    underscore: str
    hyphen: str
    slashed: str
    """"/" between two words."""
    seconds: str
    day_article: str
    day_of: str
    """Between day and month."""


@dataclass(frozen=True, slots=True)
class Language:
    """Rules and tables of one language.

    Attributes:
        decimal: Decimal mark; ``thousands``: mark between groups of three digits.
        digits: The words for 0 … 9, as digits are read out one by one.
        month_first: ``3/4`` is March 4 rather than April 3.
        months: Full names, January first.
        month_names: Every way a month is written (lower case, no stop) to its number 1 … 12.
        currencies: By symbol and by ISO code.
        cents: What ``¢`` counts.
        units: By the symbol that stands after a number.
        per: By what stands after a slash: ``/mo`` is "per month".
        magnitudes: Word or letter after a number to what is said (``k`` is "thousand").
        abbreviations: Written form (lower case, with its stops) to what is said.
        before_digit: Abbreviations that are words of their own unless a number follows (``No. 5``).
        ambiguous: Abbreviations that differ before a name and after one (``St.``).
        symbols: Single characters to what is said.
        phrases: Fixed expressions with digits, such as ``24/7``.
        fractions: (part, whole) to what is said alone and after a whole number.
        ordinal_suffixes: Alternatives of a pattern, such as ``st|nd|rd|th``.
        decade: Reads 1990 or 90 as the decade.
        day_of_month: Reads the day in a date.
        clock: (hour 0 … 24, minute, ``am``/``pm``/empty) to what is said.
        date_contexts: Words right before ``3/4`` that make it a date.
        phone_contexts: Words shortly before digits that make them a telephone number.
        year_contexts: Words before a number of four digits that make it a year.
        code_contexts: Words before digits that are an identifier, to be read one by one.
        strong_code_contexts: Those that need no word such as "number" between.
        code_linkers: Words that may stand between, as alternatives.
    """

    decimal: str
    thousands: str
    digits: tuple[str, ...]
    month_first: bool
    months: tuple[str, ...]
    month_names: Mapping[str, int]
    currencies: Mapping[str, Currency]
    cents: Names
    units: Mapping[str, Names]
    per: Mapping[str, str]
    magnitudes: Mapping[str, str]
    abbreviations: Mapping[str, str]
    before_digit: Mapping[str, str]
    ambiguous: Mapping[str, Names]
    symbols: Mapping[str, str]
    phrases: Mapping[str, str]
    fractions: Mapping[tuple[int, int], Names]
    words: Words
    cardinal: Callable[[int], str]
    ordinal: Callable[[int], str]
    ordinal_suffixes: str
    year: Callable[[int], str]
    decade: Callable[[int], str]
    day_of_month: Callable[[int], str]
    clock: Callable[[int, int, str], str]
    date_contexts: frozenset[str]
    phone_contexts: frozenset[str]
    year_contexts: frozenset[str]
    code_contexts: frozenset[str]
    strong_code_contexts: frozenset[str]
    code_linkers: frozenset[str]
