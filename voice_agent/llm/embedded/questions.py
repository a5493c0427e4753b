"""What kind of value a field holds, how to ask for it, and whether a caller asks something."""

from __future__ import annotations

import re
from enum import Enum

from voice_agent.llm.embedded.choice import as_words
from voice_agent.llm.protocol import FieldCard


class Kind(Enum):
    """How a field's value is read. The type decides; for texts, name and description do."""

    TEXT = "text"
    NAME = "name"
    CHOICE = "choice"
    BOOL = "bool"
    INT = "int"
    NUMBER = "number"
    MONEY = "money"
    DIGITS = "digits"
    DATE = "date"
    TIME = "time"
    EMAIL = "email"
    LIST = "list"


_TEXT_HINTS = (
    (Kind.EMAIL, r"e-?mail(?: address)?"),
    (Kind.DATE, r"date|day|birthday|dob|deadline"),
    (Kind.TIME, r"time|hour"),
    (Kind.MONEY, r"amount"),
    (Kind.DIGITS, r"number|phone|mobile|digits?|pin|zip|postcode|postal code|iban|imei|serial|code|id"),
    (Kind.NAME, r"(?:first |last |sur|full )?name"),
)
_MONEY_HINT = re.compile(r"\b(?:amount|price|cost|fee|sum|money|payment|balance|budget|dollars|euros)\b")
_PROSE_HINT = re.compile(
    r"\b(?:street|address|city|town|note|notes|comment|reason|problem|issue|description|message)\b"
)
_ASKING = re.compile(
    r"(?:(?:um|uh|so|well|but|and|wait|sorry|okay|hey) )*"
    r"(?:what|when|where|who|why|how|which|whose|can|could|do|does|is|are|will|would|should|may)\b"
)


_ASKING_BACK = re.compile(
    r"(?:(?:um|uh|so|well|but|and|wait|sorry|okay|hey|oh|no|yes) )*"
    r"(?:(?:until|till|since|by|for|from|at|to|in|on) )?"
    r"(?:what|when|where|who|why|how|which|whose|are|is there)\b(?! about)"
)


def asks_back(text: str) -> bool:
    """Whether ``text`` asks for something of its own, so that a day or number in it is no answer.

    "When are you open on Saturday?" is; "Could you come on Saturday?" and "How about Saturday?" answer.
    """
    return _ASKING_BACK.match(" ".join(re.findall(r"[a-z']+", text.lower()))) is not None


def kind_of(card: FieldCard) -> Kind:
    """Return how the values of ``card`` are read."""
    if card.type == "list":
        return Kind.LIST
    if card.choices or card.type == "categorical":
        return Kind.CHOICE
    name, about = as_words(card.name), card.description.lower()
    if card.type == "float":
        return Kind.MONEY if _MONEY_HINT.search(f"{name} {about}") else Kind.NUMBER
    if card.type in ("bool", "int"):
        return Kind(card.type)
    if _PROSE_HINT.search(name) and "mail" not in name:
        return Kind.TEXT
    for source in (name, about if len(about) < 60 else ""):
        for kind, pattern in _TEXT_HINTS:
            if re.search(rf"(?:\b|_)(?:{pattern})\b", source):
                return kind
    return Kind.TEXT


def question(card: FieldCard, *, hint: bool = False) -> str:
    """Return words that ask for ``card``. ``hint`` adds how to answer, for a second attempt."""
    if card.description.strip().endswith("?"):
        asking = card.description.strip()
    else:
        about = re.sub(
            r"^(?:the|a|an|your|customer's|caller's) ", "", card.description.strip().rstrip("."), flags=re.IGNORECASE
        )
        about = about[:1].lower() + about[1:] if 0 < len(about.split()) <= 6 else as_words(card.name)
        asking = f"Is it {about}?" if kind_of(card) is Kind.BOOL else f"What is the {about}?"
    if kind_of(card) is Kind.CHOICE and len(card.choices) <= 5:
        *most, last = [as_words(choice) for choice in card.choices] or [""]
        return f"{asking} You can say {', '.join(most)} or {last}." if most else asking
    hints = {Kind.BOOL: " Please say yes or no.", Kind.DIGITS: " Please say it digit by digit."}
    return asking + (hints.get(kind_of(card), "") if hint else "")


def is_question(text: str) -> bool:
    """Whether ``text`` asks something rather than tells it."""
    said = text.strip().lower()
    return said.endswith("?") or _ASKING.match(said.replace(",", "")) is not None
