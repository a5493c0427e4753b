"""Languages without a table of their own: plain numbers by num2words, the rest as written."""

from __future__ import annotations

import re

from voice_agent.speech.speakable.traced import TracedText

_NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,15}(?:([.,])(\d{1,6}))?(?![\w:/-]|[.,]\d)")
_URL = re.compile(r"(?:https?://|www\.)\S*[\w/]")
_HOST = re.compile(r"(?:https?://)?(?:www\.)?([^/\s]*)")


def say_plain_numbers(text: TracedText, language: str) -> None:
    """Say whole numbers and decimals in ``language``; leave them as written where num2words does not know it."""
    from num2words import num2words

    text.sub(_URL, lambda match: found[1] if (found := _HOST.match(match[0])) else "")

    def say(match: re.Match[str]) -> str | None:
        # Three digits after the mark may be thousands, depending on the language: left to the engine.
        if match[2] is not None and len(match[2]) == 3:
            return None
        if match[0].startswith("0") and match[1] is None and len(match[0]) > 1:
            return None
        try:
            return str(num2words(match[0].replace(",", "."), lang=language))
        except (NotImplementedError, OverflowError, ValueError, IndexError, KeyError, TypeError):
            return None

    text.sub(_NUMBER, say)
