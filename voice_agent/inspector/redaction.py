"""Keeps personal data out of what is shown: the values of memory fields marked ``pii: true``.

A value is taken out wherever it stands in a record: as the field's value, in arguments and results of
tools, in what was said and in prompts. Digits are found however they are grouped, and as words said
one by one ("four seven one one", "oh", "double one"). Other ways to say a value ("the seventeenth of
May") are not found, nor is what was said before any field held it.

Pure: no clock, no I/O.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from voice_agent.dialogue.events import ENVELOPE, payload_of

REDACTED = "[redacted]"
WITHHELD = "[shown when the turn has ended]"
MAX_VALUES = 500
"""Values looked for in one conversation, the newest."""
MAX_VALUE_CHARS = 500
_SHORTEST = 3
"""Letters or digits a value must have to be looked for in text: "7" or "no" would be found everywhere."""
_DIGIT_WORDS = ("zero|oh|o|nought", "one", "two|to", "three", "four|for", "five", "six", "seven", "eight", "nine")
_BETWEEN = r"[\s,.\-–/()]*"

Record = Mapping[str, Any]
Names = frozenset[tuple[str, str]]


class Redactor:
    """Args:
    values: What must not be shown: texts, numbers, lists and mappings of them.
    names: Names of fields whose value is taken out where they stand as a key in JSON.
    """

    def __init__(self, values: Iterable[Any], names: Iterable[str] = ()) -> None:
        found = dict.fromkeys(text for value in values for text in _texts(value))
        kept = sorted(list(found)[-MAX_VALUES:], key=len, reverse=True)
        self._names = frozenset(names)
        # Longest first: a number that contains another is taken out whole.
        self._pattern = re.compile("|".join(map(_pattern, kept)), re.IGNORECASE) if kept else None

    def text(self, text: str) -> str:
        """Return ``text`` without any of the values."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def value(self, value: Any, *, nested: bool = False) -> Any:
        """Return JSON-like data without any of the values. ``nested``: keys that name such a field count."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return REDACTED if self.text(str(value)) != str(value) else value
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): REDACTED
                if nested and key in self._names and item is not None
                else self._json(item)
                if str(key).endswith("_json") and isinstance(item, str)
                else self.value(item, nested=nested)
                for key, item in value.items()
            }
        if isinstance(value, Sequence):
            return [self.value(item, nested=nested) for item in value]
        return self.text(str(value))

    def _json(self, text: str) -> str:
        try:
            return json.dumps(self.value(json.loads(text), nested=True), ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.text(text)


def is_personal(kind: str, payload: Record, fields: Names) -> bool:
    """Return whether a record writes a field of personal data; ``fields`` are those the project now marks."""
    return kind == "memory_set" and (
        bool(payload.get("pii")) or (str(payload.get("namespace")), str(payload.get("key"))) in fields
    )


def redactor_for(records: Iterable[Record], fields: Names) -> Redactor:
    """Return the redactor of one conversation.

    Args:
        records: All of them that are at hand, not only those to be shown.
        fields: (namespace, name) of each field that the project marks as personal.
    """
    values, names = [], {name for _, name in fields}
    for record in records:
        kind, payload = payload_of(record)
        if is_personal(kind, payload, fields):
            names.add(str(payload.get("key")))
            values.append(_parsed(payload.get("value_json")))
    return Redactor(values, names)


def redacted(records: Sequence[Record], fields: Names, redactor: Redactor | None = None) -> list[dict[str, Any]]:
    """Return ``records`` as they may be shown.

    What a caller says in a turn that has not ended is withheld where the project has personal data at
    all: only at its end is it known which of it is personal.
    """
    redactor = redactor or redactor_for(records, fields)
    finished = {p.get("turn_id") for r in records for k, p in (payload_of(r),) if k == "turn_finished"}
    shown = []
    for record in records:
        kind, payload = payload_of(record)
        clean = redactor.value(payload)
        if is_personal(kind, payload, fields):
            clean["value_json"] = json.dumps(REDACTED)
        elif fields and kind in ("user", "tool_executed", "mcp_tool_executed", "knowledge_searched"):
            turn = payload.get("turn_id")
            if turn is not None and turn not in finished:
                clean = {key: WITHHELD if key in _SPOKEN else item for key, item in clean.items()}
        shown.append({**{key: item for key, item in record.items() if key in ENVELOPE}, kind: clean})
    return shown


_SPOKEN = frozenset({"text", "arguments_json", "result_json", "query"})


def _parsed(text: Any) -> Any:
    try:
        return json.loads(str(text))
    except ValueError:
        return None


def _texts(value: Any) -> Iterable[str]:
    """Every text in a value that is worth looking for."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        for text in (str(value), *(_written(value) if isinstance(value, float) else ())):
            text = text.strip()[:MAX_VALUE_CHARS]
            if sum(map(str.isalnum, text)) >= _SHORTEST:
                yield text


def _written(value: float) -> Iterable[str]:
    """A number as it is written elsewhere: as money, and without the fraction that it has not."""
    if math.isfinite(value):
        yield f"{value:.2f}"
        if value.is_integer():
            yield f"{value:.0f}"


def _pattern(text: str) -> str:
    digits = [c for c in text if c.isdigit()]
    if len(digits) >= _SHORTEST and not any(map(str.isalpha, text)) and text.isascii():
        return rf"(?<!\w){_digits(digits)}(?!\w)"
    body = r"\s+".join(map(re.escape, text.split()))
    return rf"(?<!\w){body}(?!\w)" if text[0].isalnum() and text[-1].isalnum() else body


def _digits(digits: Sequence[str]) -> str:
    """A pattern for digits one by one, repeated ones also as "double" and "triple"."""
    parts, index = [], 0
    while index < len(digits):
        run = 1
        while run < 3 and index + run < len(digits) and digits[index + run] == digits[index]:
            run += 1
        one = rf"(?:{digits[index]}|{_DIGIT_WORDS[int(digits[index])]})"
        each = _BETWEEN.join([one] * run)
        if run == 2:
            each = rf"(?:{each}|double{_BETWEEN}{one})"
        elif run == 3:
            pair = rf"double{_BETWEEN}{one}"
            each = rf"(?:{each}|triple{_BETWEEN}{one}|{pair}{_BETWEEN}{one}|{one}{_BETWEEN}{pair})"
        parts.append(each)
        index += run
    return _BETWEEN.join(parts)
