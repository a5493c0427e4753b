"""Declared fields of memory, and what a value must be to fit one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from voice_agent.dialogue.conditions import Reference

MAX_TEXT_CHARS = 10_000
MAX_LIST_ITEMS = 1_000
MAX_VALUE_CHARS = 100_000
"""Size of a list or a free value as JSON: it is written down with every snapshot."""
MAX_INTEGER_BITS = 1024
"""Larger than any double; Python itself refuses to write out much longer ones."""

FieldType = Literal["text", "categorical", "bool", "int", "float", "list", "any"]
TYPE_ALIASES: Mapping[str, FieldType] = {
    "text": "text", "str": "text", "string": "text",
    "categorical": "categorical", "enum": "categorical",
    "bool": "bool", "boolean": "bool",
    "int": "int", "integer": "int",
    "float": "float", "number": "float", "numeric": "float",
    "list": "list", "any": "any", "object": "any", "dict": "any",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One declared entry of memory.

    Attributes:
        public: Readable by other skills; kept until the same skill starts again.
        llm_settable: The model may write it without a collect step asking for it.
        pii: Personal data: kept out of logs.
        seed: May be filled from the metadata of a new session (project only).
        mutable: May be written more than once (project only).
    """

    namespace: str
    name: str
    type: FieldType = "any"
    description: str = ""
    enum_values: tuple[str, ...] = ()
    initial_value: Any = None
    public: bool = True
    llm_settable: bool = False
    pii: bool = False
    seed: bool = False
    mutable: bool = False

    @property
    def reference(self) -> Reference:
        return Reference(self.namespace, self.name)


class MemoryRefused(Exception):
    """A write that the declarations do not allow. The message is fit for the model and the operator."""


_YES = {"yes", "true", "y", "1", "on"}
_NO = {"no", "false", "n", "0", "off"}


def coerce(declared: Field, value: Any) -> Any:
    """Return ``value`` as the field's type.

    Raises:
        MemoryRefused: It cannot be read as that type without guessing.
    """
    if value is None:
        return value
    converted = _CONVERTERS[declared.type](declared, value)
    if converted is _TOO_LARGE:
        raise MemoryRefused(f"{declared.name} takes at most {MAX_VALUE_CHARS} characters of JSON.")
    if converted is _NO_FIT:
        wanted = f"one of {', '.join(declared.enum_values)}" if declared.type == "categorical" else declared.type
        given = "that" if declared.pii else _shown(value)
        raise MemoryRefused(f"{declared.name} takes {wanted}, not {given}.")
    return converted


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001 - a tool's object may raise, and so does a number too long to be written out
        return f"a value of type {type(value).__name__}"


_NO_FIT, _TOO_LARGE = object(), object()


def _any(declared: Field, value: Any) -> Any:
    """Return a copy of ``value`` as plain JSON data: what a writer keeps a hold of must not change memory later."""
    try:
        text = json.dumps(value, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _NO_FIT
    return json.loads(text) if len(text) <= MAX_VALUE_CHARS else _TOO_LARGE


def _text(declared: Field, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not _is_writable(value):
        return _NO_FIT
    return str(value)[:MAX_TEXT_CHARS]


def _categorical(declared: Field, value: Any) -> Any:
    wanted = str(value).strip().casefold()
    return next((v for v in declared.enum_values if v.casefold() == wanted), _NO_FIT)


def _bool(declared: Field, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else _NO_FIT


def _number(kind: Callable[[Any], Any]) -> Callable[[Field, Any], Any]:
    def convert(declared: Field, value: Any) -> Any:
        if isinstance(value, bool):
            return _NO_FIT
        if isinstance(value, float) and kind is int:
            return int(value) if value.is_integer() else _NO_FIT
        try:
            number = kind(value.replace(",", "").strip() if isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError):
            return _NO_FIT
        return number if _is_writable(number) else _NO_FIT

    return convert


def _is_writable(value: str | float) -> bool:
    """Return whether ``value`` can be written down and read again: no infinity, no number without end."""
    return not isinstance(value, int | float) or (
        math.isfinite(value) if isinstance(value, float) else value.bit_length() <= MAX_INTEGER_BITS
    )


def _list(declared: Field, value: Any) -> Any:
    return _any(declared, list(value)[:MAX_LIST_ITEMS]) if isinstance(value, list | tuple) else _NO_FIT


_CONVERTERS: Mapping[str, Callable[[Field, Any], Any]] = {
    "text": _text, "categorical": _categorical, "bool": _bool,
    "int": _number(int), "float": _number(float), "list": _list, "any": _any,
}  # fmt: skip
