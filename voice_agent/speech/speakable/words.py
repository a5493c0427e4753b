"""Abbreviations, signs and punctuation: what is left when contacts, dates and numbers have been said."""

from __future__ import annotations

import re

from voice_agent.speech.abbreviations import NEVER_FINAL, SENTENCE_OPENERS
from voice_agent.speech.speakable.language import Language
from voice_agent.speech.speakable.traced import Rewrite, TracedText

_NEXT_WORD = re.compile(r"[\s\"'“(]+([\w']+)")
_PHRASE = r"(?<![\w.,/])(?:{})(?![\w/]|[.,]\d)"
_CAPITAL_BEFORE = re.compile(r"\b[A-Z][\w'’]*\s+$")
_CAPITAL_AFTER = re.compile(r"\s+[A-Z]")

_HASHTAG = re.compile(r"(?<!\w)#(?=[A-Za-z])")
_SLASH = re.compile(r"(?<=\w)\s?/\s?(?=\w)")
_WORD_JOINT = re.compile(r"(?<=\w)_+(?=\w)")
_ARROW = re.compile(r"\s*(?:[→⇒➔]|->|=>|--?>)\s*")
_DASH = re.compile(r"\s*[—―]\s*|\s+[–-]+\s+|\s*--+\s*")
_OPENING = re.compile(r"(?<=[\w%])\s*[(\[{]\s*(?=\w)")
_CLOSING = re.compile(r"(?<=\w)[)\]}](?=\s+\w)")
_CURLY = re.compile(r"(?<=\w)[’ʼ′](?=\w)")
_ELLIPSIS = re.compile(r"(?:\.{2,}|…)+[.…]*(?=\s*(\w)?)")
_SILENT = re.compile(r"[\"“”„«»‹›‘’‚`´*_~^\\{}\[\]()<>|#©®™•·¿¡=+/]|(?<!\w)'|'(?!\w)|(?<!\w)-+|-+(?!\w)")
_REPEATED = re.compile(r"[!?.]*\?[!?.]*|!+[!.]*")
_STRAY = re.compile(r"(?:(?<=\s)|^)[,;:.!?]+(?=\s|$)")
_SPACE_BEFORE_MARK = re.compile(r"\s+(?=[,;:.!?])")
_MARKS = re.compile(r"[,;:]+(?:\s*[,;:])*(?=\s*[.!?])|,(?:\s*,)+|(?<=[;:]),|(?<=[.!?]),")
_SPACE = re.compile(r"\s{2,}|[^\S ]")
_EDGE = re.compile(r"\A[\s,;:.!?]+|\s+\Z")


def keeps_stop(text: str, at: int, word: str) -> bool:
    """Whether the stop of an abbreviation that ends at ``at`` also ends the sentence."""
    if not text[at:].strip():
        return True
    following = _NEXT_WORD.match(text, at)
    if following is None or word.lower().rstrip(".") in NEVER_FINAL:
        return False
    return following[1][0].isupper() and following[1].lower() in SENTENCE_OPENERS


def say_abbreviations(text: TracedText, language: Language) -> None:
    """Expand abbreviations and fixed phrases. Runs before numbers are said, which ``No. 5`` needs."""
    text.sub(_pattern(language.phrases), lambda match: language.phrases[match[0].lower()])
    text.sub(_pattern(language.before_digit, r"(?=\s?\d)"), lambda match: language.before_digit[match[0].lower()] + " ")
    text.sub(_pattern(language.ambiguous), lambda match: _ambiguous(match, language))
    text.sub(_pattern(language.abbreviations), lambda match: _abbreviation(match, language))


def say_signs(text: TracedText, language: Language) -> None:
    """Say signs between words. Runs after numbers have taken theirs."""
    text.sub(_ARROW, lambda match: ", ")
    text.sub(_HASHTAG, lambda match: "")
    text.sub(_CURLY, lambda match: "'")
    text.sub(_WORD_JOINT, lambda match: " ")
    text.sub(_SLASH, lambda match: f" {language.words.slashed} ")
    signs = re.compile("|".join(map(re.escape, language.symbols)))
    text.sub(signs, lambda match: f" {language.symbols[match[0]]} ")


def tidy_punctuation(text: TracedText) -> None:
    """Leave only marks an engine makes pauses of, each once, and single spaces."""
    text.sub(_CURLY, lambda match: "'")
    text.sub(_ELLIPSIS, lambda match: "," if match[1] and not match[1].isupper() else ".")
    text.sub(_DASH, lambda match: ", ")
    text.sub(_OPENING, lambda match: ", ")
    text.sub(_CLOSING, lambda match: ",")
    text.sub(_SILENT, lambda match: " ")
    text.sub(_REPEATED, lambda match: "?" if "?" in match[0] else "!")
    text.sub(_SPACE_BEFORE_MARK, lambda match: "")
    text.sub(_STRAY, lambda match: "")
    text.sub(_MARKS, lambda match: "," if match[0].startswith(",") and "," in match[0][1:] else "")
    text.sub(_SPACE, lambda match: " ")
    text.sub(_SPACE_BEFORE_MARK, lambda match: "")
    text.sub(_EDGE, lambda match: "")


def _pattern(keys: object, behind: str = r"(?!\w)") -> re.Pattern[str]:
    alternatives = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))  # type: ignore[call-overload]
    return re.compile(rf"(?<![\w.@/-])(?:{alternatives}){behind}", re.IGNORECASE)


def _ambiguous(match: re.Match[str], language: Language) -> Rewrite:
    """``St. Mary`` is a saint, ``Main St.`` a street."""
    before_name, after_name = language.ambiguous[match[0].lower()]
    named_before = _CAPITAL_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
    if _CAPITAL_AFTER.match(match.string, match.end()) and not named_before:
        return before_name
    return after_name + ("." if keeps_stop(match.string, match.end(), "") else "")


def _abbreviation(match: re.Match[str], language: Language) -> Rewrite:
    spoken = language.abbreviations[match[0].lower()]
    # "Mon." is a day and "Ms." a title, "5 ms." is neither.
    if spoken[0].isupper() and len(spoken) > 1 and spoken[1].islower() and not match[0][0].isupper():
        return None
    stop = match[0].endswith(".") and keeps_stop(match.string, match.end(), match[0])
    return spoken + ("." if stop else "")
