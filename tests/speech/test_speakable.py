"""Spoken text keeps its ties to the written words, whatever the text."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.speakable import speakable
from voice_agent.speech.speakable.english import ENGLISH
from voice_agent.speech.speakable.numbers import Numbers
from voice_agent.speech.speakable.traced import TracedText

PARTS = st.sampled_from(
    [
        *("Hello", "the", "**bold**", "_it_", "`code`", "`x=1`", "[a](b)", "[1]", "```", "| a |", "# T", "- x", "1. y"),
        *("$42", "$1.50", "5%", "3.14", "1,000", "1st", "5-10", "3:30", "9 a.m.", "March 3, 2024", "2024-01-02", "½"),
        *("555-123-4567", "+1 (555) 123-4567", "a@b.co", "https://a.b/c", "AB12", "Dr.", "St.", "e.g.", "24/7", "&"),
        *("😀", ".", ",", "...", "—", "(", ")", '"', "'", "\n", "\n\n", " ", " ", "#5", "no. 5", "$5-$10", "<b>", "\\"),
    ]
)
TEXTS = st.one_of(st.text(max_size=120), st.lists(PARTS, max_size=30).map("".join), st.lists(PARTS).map(" ".join))


@given(TEXTS, st.sampled_from(["en", "en-US", "de", "xx"]))
def test_each_written_word_has_a_range_of_the_spoken_text_in_order(text: str, language: str) -> None:
    said = speakable(text, language)
    assert [(span.start, span.end) for span in said.spans] == [word.span() for word in re.finditer(r"\S+", text)]
    assert all(0 <= span.first <= span.last <= len(said.text) for span in said.spans)
    for before, after in zip(said.spans, said.spans[1:], strict=False):
        assert before.first <= after.first
        assert before.last <= after.last


@given(TEXTS)
def test_every_spoken_word_belongs_to_a_written_one(text: str) -> None:
    said = speakable(text)
    covered = set()
    for span in said.spans:
        covered.update(range(span.first, span.last))
    assert all(at in covered for at, character in enumerate(said.text) if character.isalnum())


@given(TEXTS)
def test_no_digit_and_no_double_space_reaches_the_engine(text: str) -> None:
    said = speakable(text).text
    assert not re.search(r"[0-9]|\s\s|^\s|\s$", said)
    assert said == "" or any(character.isalnum() for character in said)


def test_words_map_to_what_is_said_for_them() -> None:
    text = "Pay **$42** by March 3, 2024 😀 [here](http://a.example)."
    said = speakable(text)
    assert [(text[span.start : span.end], said.text[span.first : span.last]) for span in said.spans] == [
        ("Pay", "Pay"),
        ("**$42**", "forty-two dollars"),
        ("by", "by"),
        ("March", "March"),
        ("3,", "third,"),
        ("2024", "twenty twenty-four"),
        ("😀", ""),
        ("[here](http://a.example).", "here."),
    ]


def test_a_phone_number_maps_group_by_group() -> None:
    said = speakable("(555) 123 4567")
    assert [said.text[span.first : span.last] for span in said.spans] == [
        "five five five,",
        "one two three",
        "four five six seven",
    ]


@pytest.mark.parametrize(
    ("language", "text", "spoken"),
    [
        ("de", "Das kostet 42,50 in 3 Tagen", "Das kostet zweiundvierzig Komma fünf in drei Tagen"),
        ("fr", "J'ai 21 livres", "J'ai vingt et un livres"),
        ("de", "am 3.4.2024 um 12:30", "am 3.4.2024 um 12:30"),
        ("xx", "**n** 42 `x=1`", "n 42"),
        ("de", "Siehe https://www.beispiel.de/a?b=1", "Siehe beispiel.de"),
    ],
)
def test_a_language_without_a_table_reads_numbers_where_it_can_and_the_rest_as_written(
    language: str, text: str, spoken: str
) -> None:
    assert speakable(text, language).text == spoken


def test_a_language_with_other_marks_reads_its_numbers_by_its_own_table() -> None:
    continental = dataclasses.replace(
        ENGLISH, decimal=",", thousands=".", words=dataclasses.replace(ENGLISH.words, point="comma")
    )
    text = TracedText("1.000,50 and 3,5 % of 42 €")
    Numbers(continental).say(text)
    assert text.text == "one thousand comma five zero and three comma five percent of forty-two euros"


def test_a_region_does_not_hide_the_language() -> None:
    assert speakable("$5", "en_GB").text == speakable("$5", "EN-us").text == "five dollars"
