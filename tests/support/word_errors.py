"""Word error rate with a stated normaliser."""

from __future__ import annotations

import re
from collections.abc import Sequence

from num2words import num2words

_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)\b")
_WRITTEN_OUT = {"mr": "mister", "mrs": "missus"}
_NUMBER = re.compile(r"\d+")


def normalized(text: str) -> list[str]:
    """Return the words of ``text`` as they are compared.

    Lower case; numbers as words ("5" → "five", "10th" → "tenth", "1,000" → "one thousand"); hyphens
    and dashes split words; apostrophes are dropped ("you're" → "youre"), other punctuation splits;
    "Mr.", "Mrs.", "*" (star) and "#" (pound) are written out.
    """
    text = text.casefold().replace("’", "'")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = _ORDINAL.sub(lambda match: f" {num2words(int(match[1]), to='ordinal')} ", text)
    text = _NUMBER.sub(lambda match: f" {num2words(int(match[0]))} ", text)
    text = text.replace("*", " star ").replace("#", " pound ")
    words = re.sub(r"[^\w\s]|_", " ", text.replace("'", "")).split()
    return [_WRITTEN_OUT.get(word, word) for word in words]


def word_errors(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Return the least number of words to insert, delete or replace to turn one into the other (Levenshtein)."""
    previous = list(range(len(heard) + 1))
    for row, expected in enumerate(reference, 1):
        current = [row]
        for column, word in enumerate(heard, 1):
            replaced = previous[column - 1] + (expected != word)
            current.append(min(replaced, previous[column] + 1, current[-1] + 1))
        previous = current
    return previous[-1]
