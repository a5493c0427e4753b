"""Web addresses, e-mail addresses and telephone numbers, as people say them."""

from __future__ import annotations

import re

from voice_agent.speech.speakable.language import Language
from voice_agent.speech.speakable.traced import Edit, Rewrite, TracedText

_EMAIL = re.compile(r"(?<![\w.+-])(?:mailto:)?([\w.+%-]+)@((?:[\w-]+\.)+[A-Za-z]{2,24})(?![\w-])")
_URL = re.compile(
    r"(?<![\w@.])(?:(?:https?|ftp|wss?)://|www\.)[^\s<>\"'“”‘’)\]]*[^\s<>\"'“”‘’)\].,;:!?*_~]"
    r"|(?<![\w@./-])(?:[a-z0-9-]{1,63}\.){1,4}(?:com|org|net|edu|gov|io|co\.uk|de|fr|es|eu|app|dev|ai|info|example)"
    r"(?:/[\w./?=&%#+~-]*[\w/])?(?![\w@-])",
    re.IGNORECASE,
)
_HOST = re.compile(r"(?:[a-z]+://)?(?:[^/@\s]*@)?(?:www\.)?([^/:?#\s]*)(?::\d+)?(/[^?#\s]*)?", re.IGNORECASE)
_SHORT_PATH = re.compile(r"/([A-Za-z][A-Za-z-]{1,23})/?")

_PHONE = re.compile(
    r"(?<![\w.,/$€£-])(\+\s?)?(?:(?:\d{1,3}[\s.-]?)?(\(\d{1,5}\)[\s.-]?))?\d{1,12}(?:[\s.‑–-]\d{2,12}){0,5}(?!\w|[.,:/]\d|-\w)"
)
_PHONE_SHAPES = {(3, 4), (3, 3, 4), (1, 3, 3, 4), (3, 2, 4), (4, 4, 4, 4), (4, 3, 3), (5, 6), (4, 6, 5)}
_DIGITS = re.compile(r"\d+")


def say_contacts(text: TracedText, language: Language) -> None:
    """Say addresses and telephone numbers. Runs before dates and numbers, which their parts look like."""
    text.sub(_EMAIL, lambda match: _email(match, language))
    text.sub(_URL, lambda match: _url(match[0], language))
    text.sub(_PHONE, lambda match: _phone(match, language))


def digits_in_groups(digits: str, language: Language) -> str:
    """``427913`` → ``four two seven, nine one three``: up to four digits in one breath, then threes."""
    if len(digits) <= 4:
        groups = [digits]
    else:
        # A rest of one digit joins the last group: nobody says "one two three, four".
        cuts = list(range(0, len(digits) - 1, 3)) if len(digits) % 3 == 1 else list(range(0, len(digits), 3))
        groups = [digits[a:b] for a, b in zip(cuts, [*cuts[1:], len(digits)], strict=True)]
    return ", ".join(" ".join(language.digits[int(digit)] for digit in group) for group in groups)


def _email(match: re.Match[str], language: Language) -> str:
    words = language.words
    return f"{_address(match[1], language)} {words.at} {_address(match[2], language)}"


def _url(url: str, language: Language) -> str:
    """Say the host, and a path of one plain word; nobody wants the rest read out."""
    found = _HOST.match(url)
    if found is None or not found[1]:
        return ""
    spoken = _address(found[1], language)
    path = _SHORT_PATH.fullmatch(found[2] or "")
    if path is not None and "?" not in url:
        spoken += f" {language.words.slash} {_address(path[1], language)}"
    return spoken


def _address(part: str, language: Language) -> str:
    words = language.words
    names = {".": words.dot, "_": words.underscore, "-": words.hyphen, "+": words.plus, "%": words.percent}
    spoken = "".join(f" {names[mark]} " if mark in names else mark for mark in part)
    return _DIGITS.sub(lambda digits: f" {' '.join(language.digits[int(d)] for d in digits[0])} ", spoken).strip()


def _phone(match: re.Match[str], language: Language) -> Rewrite:
    groups = [(found.start(), found.end()) for found in _DIGITS.finditer(match.string, match.start(), match.end())]
    if not _is_phone(match, groups, language):
        return None
    edits = []
    at = match.start()
    for index, (start, end) in enumerate(groups):
        gap = match.string[at:start]
        if index:
            edits.append(Edit(at, start, ", "))
        elif gap:
            edits.append(Edit(at, start, f"{language.words.plus} " if "+" in gap else ""))
        edits.append(Edit(start, end, digits_in_groups(match.string[start:end], language)))
        at = end
    return edits


def _is_phone(match: re.Match[str], groups: list[tuple[int, int]], language: Language) -> bool:
    shape = tuple(end - start for start, end in groups)
    if not 7 <= sum(shape) <= 16:
        return False
    numbers = [match.string[start:end] for start, end in groups]
    if len(groups) > 1 and all(len(number) == 4 and number[:2] in ("19", "20") for number in numbers):
        return False
    if match[1] or match[2] or (len(groups) > 1 and shape in _PHONE_SHAPES):
        return True
    before = re.findall(r"[^\W\d]+", match.string[max(0, match.start() - 40) : match.start()].lower())
    return not language.phone_contexts.isdisjoint(before[-4:])
