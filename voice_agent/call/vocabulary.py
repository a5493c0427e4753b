"""Words that steer turn-taking, per language: what acknowledges, what stops, what promises more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import yaml

_FILES = Path(__file__).parent / "vocabularies"
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def words(text: str) -> tuple[str, ...]:
    """Return the lower-case words of ``text``: ``"Mm-hm, I'm here."`` gives ``mm hm i'm here``."""
    return tuple(_WORD.findall(text.lower().replace("’", "'")))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of one language. Phrases of several words are tuples.

    Attributes:
        backchannels: Say "go on" while the agent speaks; an answer like any other when it is silent.
        hummed: Those of them that are hardly words, so that no recogniser is ever sure of them.
        stops: Take the floor at once.
        unfinished: A sentence that ends with one of these goes on.
        stranded: Those of them that may be the last word of a whole sentence: "I know what it is for."
        fillers: Those of them that are no words; nobody ends with one.
        subordinators: A sentence that begins with one of these has a second clause, unless it is a question.
        lead_ins: May stand before a sentence without changing what it is.
        announcements: A sentence that ends with one of these tells what is still to come.
        openings: A sentence that is nothing else is only beginning.
        answers: Answer a question of yes or no.
        courtesies: Say no more than a greeting, a thank-you or a farewell.
    """

    backchannels: frozenset[tuple[str, ...]]
    hummed: frozenset[str]
    stops: frozenset[tuple[str, ...]]
    unfinished: frozenset[str]
    stranded: frozenset[str]
    fillers: frozenset[str]
    subordinators: frozenset[str]
    lead_ins: frozenset[str]
    announcements: frozenset[tuple[str, ...]]
    openings: frozenset[tuple[str, ...]]
    answers: frozenset[tuple[str, ...]]
    courtesies: frozenset[tuple[str, ...]]

    def content(self, text: str) -> tuple[str, ...]:
        """Return the words of ``text`` that are not part of a backchannel."""
        return _without(self.backchannels, words(text))

    def has_stop(self, text: str) -> bool:
        """Whether a stop word or phrase occurs in ``text``."""
        return _occur(self.stops, text)

    def is_only_stops(self, text: str) -> bool:
        """Whether ``text`` is nothing but stop words: what is wanted instead is still to come."""
        found, at = words(text), 0
        while at < len(found):
            length = next((n for n in (3, 2, 1) if found[at : at + n] in self.stops | self.backchannels), 0)
            if not length:
                return False
            at += length
        return self.has_stop(text)

    def is_hummed(self, text: str) -> bool:
        """Whether ``text`` is nothing but "mm", "uh-huh" and their like."""
        said = words(text)
        return bool(said) and self.hummed.issuperset(said)

    def has_yes_or_no(self, text: str) -> bool:
        """Whether ``text`` begins by saying yes or no, or says nothing more than that."""
        found = words(text)
        return any(found[:n] in self.answers for n in (1, 2, 3))

    def is_courtesy(self, text: str) -> bool:
        """Whether ``text`` is nothing but yes or no, a stop word, a greeting, a thank-you or a farewell."""
        found = words(text)
        return bool(found) and not _without(self.answers | self.courtesies | self.stops, found)


def _without(phrases: frozenset[tuple[str, ...]], found: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that are in none of the phrases, of up to three words each."""
    at, rest = 0, []
    while at < len(found):
        length = next((n for n in (3, 2, 1) if found[at : at + n] in phrases), 0)
        if not length:
            rest.append(found[at])
        at += max(1, length)
    return tuple(rest)


def _occur(phrases: frozenset[tuple[str, ...]], text: str) -> bool:
    found = words(text)
    return any(found[at : at + n] in phrases for at in range(len(found)) for n in (1, 2, 3))


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that blanks separate."""
    return frozenset(text.split())


def languages() -> tuple[str, ...]:
    """Return the codes of the languages that have a vocabulary."""
    return tuple(sorted(path.stem for path in _FILES.glob("*.yml")))


@lru_cache(maxsize=64)
def vocabulary_for(
    language: str, backchannels: tuple[str, ...] = (), stop_words: tuple[str, ...] = ()
) -> Vocabulary | None:
    """Return the vocabulary of a language, with more words of a project's own; None if there is none for it.

    Args:
        language: Code such as ``de`` or ``de-AT``.
        backchannels: Further words and phrases that mean "go on"; they are no stop words then.
        stop_words: Further words and phrases that stop the agent; they are no backchannels then.
    """
    code = language.replace("_", "-").split("-")[0].lower()
    if code not in languages():
        return None
    plain = _read(code)
    goes_on, stops = _phrases(backchannels), _phrases(stop_words)
    return replace(plain, backchannels=(plain.backchannels - stops) | goes_on, stops=(plain.stops - goes_on) | stops)


def _phrases(listed: Iterable[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(found for found in map(words, listed) if found)


@cache
def _read(code: str) -> Vocabulary:
    lists = {
        key: tuple(item.strip() for item in text.split(",") if item.strip())
        for key, text in yaml.safe_load((_FILES / f"{code}.yml").read_text(encoding="utf-8")).items()
    }
    return Vocabulary(
        backchannels=_phrases(lists["backchannels"]),
        hummed=frozenset(lists["hummed"]),
        stops=_phrases(lists["stops"]),
        unfinished=frozenset(lists["unfinished"]),
        stranded=frozenset(lists["stranded"]),
        fillers=frozenset(lists["fillers"]),
        subordinators=frozenset(lists["subordinators"]),
        lead_ins=frozenset(lists["lead_ins"]),
        announcements=_phrases(lists["announcements"]),
        openings=_phrases(lists["openings"]),
        courtesies=_phrases(lists["courtesies"]),
        answers=_phrases(lists["answers"]),
    )


ENGLISH = _read("en")
