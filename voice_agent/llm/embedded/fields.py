"""Typed values out of a caller's words: what a field asked for, and what was mentioned beside it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from voice_agent.llm.embedded.choice import Similarity, as_words
from voice_agent.llm.embedded.counted_digits import counted, length_of
from voice_agent.llm.embedded.dates import parse_date, parse_time
from voice_agent.llm.embedded.numbers import number_runs, parse_digits, parse_int, parse_money, parse_number, tokens
from voice_agent.llm.embedded.questions import Kind, is_question, kind_of
from voice_agent.llm.embedded.small_talk import small_talk
from voice_agent.llm.embedded.yes_no import polarity
from voice_agent.llm.protocol import FieldCard

MAX_TEXT = 500
CHOICE_FITS = 0.4
CHOICE_MARGIN = 0.05
FUZZY = 0.8
_CORRECTABLE = frozenset(
    [Kind.CHOICE, Kind.INT, Kind.NUMBER, Kind.MONEY, Kind.DIGITS, Kind.DATE, Kind.TIME, Kind.EMAIL]
)
MENTIONED_DIGITS = 4


_PAST_HINT = re.compile(
    r"\b(?:birth\w*|dob|born|happened|incident|accident|occurred|since|last|purchased?|bought|lost)\b"
)
_LEAD_IN = re.compile(
    r"(?i)^(?:(?:um+|uh+|er+|so|well|okay|ok|oh|yes|yeah|sure|hi|hello|please)\b[\s,.]*)*"
    r"(?:(?:my|the) (?:[a-z]+ ){0,3}?(?:name|address|street|city|town|problem|reason|issue|answer|email|company)s?"
    r" (?:is|are|'s|was)\b\s*|"
    r"(?:it is|it's|that is|that's|that would be|it would be|this is|i am|i'm|i am called|i'm called|call me|name's|"
    r"they call me|i would say|i'd say|i think it's|i think|i guess|because|i live (?:in|at)|i want|i'd like|"
    r"i would like|put|make it|let's say|just)\s+)?"
)
_NAME = re.compile(
    r"(?i)\b(?:my (?:full |first |last )?name is|my name's|i am called|i'm called|this is|call me)\s+"
    r"([a-z'’.-]+(?: [a-z'’.-]+){0,3})"
)
_AFTER_NAME = re.compile(r"(?i)\s+(?:and|but|speaking|here|calling|from|with|i|please|on|at|my)\b.*$")
_CORRECTION = re.compile(
    r"(?i).*(?:\b(?:actually|no wait|wait no|i meant?|make (?:it|that)|or rather|scratch that|correction)\b"
    r"|\b(?:no|sorry),? (?=\w)|\bnot (?:on |the |in the )?\w+,? (?:but )?)[\s,.]*(?=\w)"
)
"""Whatever stands before a correction: "Friday. Actually no, Tuesday" is about Tuesday."""
_HOUR = r"(?:\d{1,2}(?::\d\d)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_CLOCK = re.compile(
    rf"(?i)\b{_HOUR}(?:[ -](?:fifteen|thirty|forty[ -]five))?\s*"
    r"(?:o['’]?clock\b|[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)\b|at night\b)"
    rf"|\b\d{{1,2}}:\d\d\b|\b(?:half|quarter) (?:past|to) {_HOUR}\b"
)
"""A time of day beyond doubt: its numbers count nothing."""
_ABOUT_TIME = re.compile(r"\b(?:time|times|hour|hours|minute|minutes|clock)\b")
_ORDINAL_CHOICE = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads values. ``today`` is the caller's date; ``similar`` compares sentences."""

    today: date
    similar: Similarity

    def asked(self, card: FieldCard, utterance: str, *, guess: bool = True, question: str = "") -> Any:
        """Return the JSON value with which ``utterance`` answers the question for ``card``, or None.

        What stands after a correction goes before the whole: "the fifth, no, the sixth".

        Args:
            guess: Whether a choice may be read from the meaning of words that do not name it.
            question: How it was asked for; repeating that answers it: "okay, send it by mail".
        """
        text = utterance.strip()[:MAX_TEXT]
        kind = kind_of(card)
        if not text:
            return None
        if kind in _CORRECTABLE and (found := _CORRECTION.match(text)) is not None:
            mended = self._asked(card, kind, text[found.end() :], guess=False, question=question)
            if mended is not None:
                return mended
        return self._asked(card, kind, text, guess=guess, question=question)

    def _asked(self, card: FieldCard, kind: Kind, text: str, *, guess: bool, question: str) -> Any:
        if kind is Kind.BOOL:
            return polarity(text, f"{as_words(card.name)} {card.description} {question}")
        if kind is Kind.CHOICE:
            return self._choice(card, text, guess=guess)
        if kind is Kind.LIST:
            return self._list(card, text)
        if kind is Kind.MONEY:
            return _money(card, parse_money(text))
        if kind is Kind.NAME:
            return _name(text, asked=True)
        if kind is Kind.TEXT:
            return _free_text(text)
        return self._typed(kind, card, text)

    def mentioned(self, cards: Sequence[FieldCard], utterance: str) -> dict[str, Any]:
        """Return values of fields that nobody asked for, only where the words leave no doubt.

        Two fields of one kind compete for a value: it goes to the one whose name is said, or to none.
        """
        found: dict[Kind, list[tuple[FieldCard, Any]]] = {}
        text = utterance.strip()[:MAX_TEXT]
        mended = _CORRECTION.match(text)
        for card in cards:
            value = None
            if mended is not None and kind_of(card) in _CORRECTABLE:
                value = self._mention(card, text[mended.end() :])
            value = self._mention(card, text) if value is None else value
            if value is not None:
                found.setdefault(kind_of(card), []).append((card, value))
        values: dict[str, Any] = {}
        for kind, hits in found.items():
            if len(hits) > 1 and kind is not Kind.CHOICE:
                hits = [hit for hit in hits if is_named(hit[0], utterance)]
            if len(hits) == 1 or kind is Kind.CHOICE:
                values |= {card.name: value for card, value in hits}
        return values

    def _mention(self, card: FieldCard, text: str) -> Any:
        kind = kind_of(card)
        if kind in (Kind.BOOL, Kind.TEXT, Kind.LIST):
            return None
        if kind is Kind.CHOICE:
            return self._choice(card, text, guess=False)
        if kind is Kind.MONEY:
            return _money(card, parse_money(text, explicit=True))
        if kind is Kind.NAME:
            return _name(text, asked=False)
        if kind is Kind.DIGITS:
            length = length_of(card)
            digits = counted(text, length) if length else parse_digits(text, least=MENTIONED_DIGITS)
            return digits if digits and parse_date(text, self.today) is None else None
        if kind in (Kind.INT, Kind.NUMBER):
            return _counted(card, text, whole=kind is Kind.INT)
        return self._typed(kind, card, text)

    def _typed(self, kind: Kind, card: FieldCard, text: str) -> Any:
        about = f"{as_words(card.name)} {card.description}".lower()
        if kind in (Kind.INT, Kind.NUMBER) and not _ABOUT_TIME.search(about):
            text = _CLOCK.sub(" ", text)
        if kind is Kind.INT:
            if re.search(r"number|code|\bid\b|pin", as_words(card.name)) and (digits := parse_digits(text)):
                return int(digits)
            return parse_int(text)
        if kind is Kind.NUMBER:
            return parse_number(text)
        if kind is Kind.DIGITS:
            length = length_of(card)
            return (counted(text, length) if length else None) or parse_digits(text)
        if kind is Kind.EMAIL:
            return _email(text)
        if kind is Kind.DATE:
            day = parse_date(text, self.today, past=_PAST_HINT.search(about) is not None)
            return day.isoformat() if day else None
        moment = parse_time(text)
        return f"{moment:%H:%M}" if moment else None

    def _choice(self, card: FieldCard, text: str, *, guess: bool) -> str | None:
        said = f" {_plain(text)} "
        names = {choice: _plain(as_words(choice)) for choice in card.choices}
        exact = [
            choice
            for choice, name in names.items()
            if any(f" {one} " in said and f" not {one} " not in said for one in (name, *_synonyms(card, name)) if one)
        ]
        # "home phone" names "home phone", though "home" is a choice too.
        exact = [c for c in exact if not any(c != d and f" {names[c]} " in f" {names[d]} " for d in exact)]
        if exact:
            return exact[0] if len(exact) == 1 else None
        if fuzzy := _fuzzy(names, said.split()):
            return fuzzy
        return self._guess(card, names, text) if guess else None

    def _guess(self, card: FieldCard, names: dict[str, str], text: str) -> str | None:
        """Read an answer that names no choice: its number, a yes or no, or its meaning."""
        words = tokens(text)
        for place, ordinal in enumerate(_ORDINAL_CHOICE[: len(card.choices)]):
            if ordinal in words:
                return card.choices[place]
        verdict = polarity(text, f"{as_words(card.name)} {card.description}")
        for choice, name in names.items():
            if verdict is not None and polarity(name) is verdict:
                return choice
        lines = [f"{as_words(card.name)}: {name}" for name in names.values()]
        scores = [max(p) for p in zip(self.similar(text, list(names.values())), self.similar(text, lines), strict=True)]
        ranked = sorted(zip(scores, names, strict=True), reverse=True)
        second = ranked[1][0] if len(ranked) > 1 else 0.0
        return (
            ranked[0][1] if ranked and ranked[0][0] >= CHOICE_FITS and ranked[0][0] - second >= CHOICE_MARGIN else None
        )

    def _list(self, card: FieldCard, text: str) -> list[Any] | None:
        parts = [
            part.strip() for part in re.split(r",|\band\b|;", _LEAD_IN.sub("", text).rstrip(".!?")) if part.strip()
        ]
        if card.choices:
            one = FieldCard(card.name, "categorical", card.description, card.choices)
            parts = [choice for part in parts if (choice := self._choice(one, part, guess=False))]
        return list(dict.fromkeys(parts)) or None


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def _synonyms(card: FieldCard, choice: str) -> list[str]:
    """Return what else callers say for ``choice``: "internet (wifi, connection)" in the field's description."""
    found = re.search(rf"\b{re.escape(choice)} \(([^)]*)\)", card.description, re.IGNORECASE)
    return [_plain(one) for one in found[1].split(",")] if found else []


def _money(card: FieldCard, value: float | None) -> float | str | None:
    """Return an amount as its field keeps it; texts have two decimals, so that they can be said as they are."""
    return f"{value:.2f}" if value is not None and card.type == "text" else value


def _fuzzy(names: dict[str, str], words: Sequence[str]) -> str | None:
    best: tuple[float, str] = (0.0, "")
    for choice, name in names.items():
        width = len(name.split())
        if len(name) < 4:
            continue
        for start in range(max(1, len(words) - width + 1)):
            ratio = difflib.SequenceMatcher(None, name, " ".join(words[start : start + width])).ratio()
            best = max(best, (ratio, choice))
    return best[1] if best[0] >= FUZZY else None


def is_named(card: FieldCard, text: str) -> bool:
    """Whether ``text`` says a word of the field's name that tells it from other fields."""
    said = set(re.findall(r"[a-z]+", text.lower()))
    return bool(
        said & (set(as_words(card.name).split()) - {"number", "date", "time", "name", "the", "of", "id", "code"})
    )


def _counted(card: FieldCard, text: str, *, whole: bool) -> float | None:
    """Return the number that stands right before a word of the field's name or description."""
    words = tokens(text)
    about = {word.rstrip("s") for word in re.findall(r"[a-z]+", f"{as_words(card.name)} {card.description}".lower())}
    about -= {"number", "of", "the", "how", "many", "a", "to", "in", "for"}
    for run in number_runs(words):
        if run.end < len(words) and words[run.end].rstrip("s") in about:
            return int(run.value) if whole and run.value == int(run.value) else None if whole else run.value
    return None


def _email(text: str) -> str | None:
    joined = re.sub(
        r"\s+(?:at|@)\s+", "@", re.sub(r"\s+(?:dot|point)\s+", ".", f" {text.lower()} ".replace(" underscore ", "_"))
    )
    joined = re.sub(r"\s+(?:dash|hyphen|minus)\s+", "-", joined)
    found = re.search(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", joined)
    return found[0].rstrip(".") if found else None


def _name(text: str, *, asked: bool) -> str | None:
    if found := _NAME.search(text):
        name = found[1]
    elif asked and not is_question(text) and small_talk(text) is None:
        name = _LEAD_IN.sub("", text)
    else:
        return None
    name = _AFTER_NAME.sub("", name).strip(" .,!?")
    if not name or len(name.split()) > 4 or any(c.isdigit() for c in name):
        return None
    return name.title() if name.islower() else name


def _free_text(text: str) -> str | None:
    stripped = _LEAD_IN.sub("", text).strip(" ,.!")
    return stripped or text.strip(" ,.!") or None
