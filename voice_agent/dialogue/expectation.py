"""What would answer the question that is open: told to a call, so that it knows when an answer is whole."""

from __future__ import annotations

import re

from voice_agent.dialogue.blocks import CollectStep
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.reply import ExpectedAnswer
from voice_agent.dialogue.state import DialogueState

_COUNTS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12,
}  # fmt: skip
_LENGTH = re.compile(rf"\b(\d{{1,2}}|{'|'.join(_COUNTS)})[- ](?:digits?|figures?|numbers?)\b", re.IGNORECASE)
_DIGITS = re.compile(
    r"\b(?:digits?|figures?|(?:account|phone|telephone|mobile|card|customer|order|reference|policy|contract|member|"
    r"invoice|ticket|booking|serial|routing|social security)[_ ]?(?:number|no)|pin|zip|post ?code|postal code|"
    r"security code|code)\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"\b(?:date|birthday|day (?:of|on|for)|which day|what day|when)\b", re.IGNORECASE)


def expected_answer(state: DialogueState) -> ExpectedAnswer | None:
    """Return what answers the open question of a conversation; None when no question of a known kind is open.

    A held tool call or an offer to resume wants a yes or a no. A collect step that has asked wants a value of its
    field's type; text fields are read more closely, since digits and dates are declared as text: "six-digit account
    number" wants six digits, "day of the visit" a date.
    """
    if state.question is not None:
        return ExpectedAnswer("yes_no")
    top = state.top
    cursor = top.cursor if top is not None else None
    if cursor is None or cursor.since is None or not isinstance(cursor.step, CollectStep):
        return None
    return _of_field(cursor.step.field, cursor.step.description)


def _of_field(declared: Field, about: str) -> ExpectedAnswer:
    if declared.type == "bool":
        return ExpectedAnswer("yes_no")
    if declared.type == "categorical":
        return ExpectedAnswer("choice", choices=declared.enum_values)
    told = f"{declared.name.replace('_', ' ')} {about} {declared.description}"
    if declared.type in ("text", "int") and (length := _length(told)) is not None:
        return ExpectedAnswer("digits", length=length)
    if declared.type in ("int", "float"):
        return ExpectedAnswer("number")
    if declared.type == "text" and _DIGITS.search(told):
        return ExpectedAnswer("digits")
    if declared.type == "text" and _DATE.search(told):
        return ExpectedAnswer("date")
    return ExpectedAnswer("text")


def _length(told: str) -> int | None:
    found = _LENGTH.search(told)
    if found is None:
        return None
    word = found.group(1).lower()
    return int(word) if word.isdigit() else _COUNTS[word]
