"""What a voice should say for a text that was written to be read, and which written word each sound belongs to.

The display text stays as it is; only its spoken form changes: ``**$42** is due 3/15/2024`` is said as
"forty-two dollars is due March fifteenth, twenty twenty-four". Rules rewrite the text one after
another and every character remembers what it came from, so audio maps back to written words.

To add a language, write its `Language` table in a module of its own and enter it in ``_LANGUAGES``.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from voice_agent.speech.speakable.contacts import say_contacts
from voice_agent.speech.speakable.dates import say_dates, say_times
from voice_agent.speech.speakable.english import ENGLISH
from voice_agent.speech.speakable.fallback import say_plain_numbers
from voice_agent.speech.speakable.language import Language
from voice_agent.speech.speakable.markup import strip_markup
from voice_agent.speech.speakable.numbers import Numbers
from voice_agent.speech.speakable.traced import TracedText
from voice_agent.speech.speakable.words import say_abbreviations, say_signs, tidy_punctuation

REVISION = 1
"""Raise it with every change of the rules: speech made under older ones is then not taken from the cache."""

_LANGUAGES: dict[str, Language] = {"en": ENGLISH}
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class SpokenSpan:
    """Display characters ``[start, end)``, one word, are said by spoken characters ``[first, last)``; none if empty."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SpeakableText:
    """What an engine should read.

    Attributes:
        text: Words and pauses only; empty when there is nothing to say.
        spans: One per word of the display text, in order. Words said together share a range.
    """

    text: str
    spans: tuple[SpokenSpan, ...]


def speakable(text: str, language: str = "en") -> SpeakableText:
    """Turn display text into spoken text.

    Args:
        language: Code such as ``en`` or ``en-US``. For a language without a table numbers are read by
            num2words where it can, and everything but markup stays as written.
    """
    traced = TracedText(text)
    strip_markup(traced)
    code = language.replace("_", "-").split("-")[0].lower()
    rules = _LANGUAGES.get(code)
    if rules is None:
        say_plain_numbers(traced, code)
    else:
        say_contacts(traced, rules)
        say_abbreviations(traced, rules)
        say_dates(traced, rules)
        say_times(traced, rules)
        _numbers(code).say(traced)
        say_signs(traced, rules)
    tidy_punctuation(traced)
    if not any(character.isalnum() for character in traced.text):
        traced.clear()
    return SpeakableText(traced.text, _spans(text, traced))


@functools.cache
def _numbers(code: str) -> Numbers:
    return Numbers(_LANGUAGES[code])


def _spans(display: str, spoken: TracedText) -> tuple[SpokenSpan, ...]:
    spans = []
    origins = spoken.origins
    begin = 0
    reached = 0
    for word in _WORD.finditer(display):
        start, end = word.span()
        # Origins never run backwards, so what ended before this word need not be looked at again.
        while begin < len(origins) and origins[begin][1] <= start:
            begin += 1
        said = []
        at = begin
        while at < len(origins) and origins[at][0] < end:
            if origins[at][1] > start and not spoken.text[at].isspace():
                said.append(at)
            at += 1
        # A dash that became a pause is not a word that could be heard.
        is_said = any(spoken.text[place].isalnum() for place in said)
        first, last = (said[0], said[-1] + 1) if is_said else (reached, reached)
        spans.append(SpokenSpan(start, end, first, last))
        reached = last
    return tuple(spans)
