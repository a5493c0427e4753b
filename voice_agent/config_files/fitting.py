"""Says what a value must be instead of one that a model refused, in words for whoever writes the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = {
    "greater_than": "Write a value above {gt}.",
    "greater_than_equal": "Write a value of at least {ge}.",
    "less_than": "Write a value below {lt}.",
    "less_than_equal": "Write a value of at most {le}.",
    "multiple_of": "Write a multiple of {multiple_of}.",
    "finite_number": "Write a finite number.",
    "string_too_short": "Write a longer text: {min_length} or more characters.",
    "string_too_long": "Write a shorter text: {max_length} or fewer characters.",
    "string_pattern_mismatch": "Write a text of the form {pattern}.",
    "too_short": "Give more entries: {min_length} at least.",
    "too_long": "Give fewer entries: {max_length} at most.",
    "literal_error": "Write {expected}.",
    "enum": "Write {expected}.",
    "bool_type": "Write true or false.",
    "bool_parsing": "Write true or false.",
    "int_type": "Write a whole number.",
    "int_parsing": "Write a whole number.",
    "int_from_float": "Write a whole number.",
    "float_type": "Write a number.",
    "float_parsing": "Write a number.",
    "string_type": "Write text, in quotes.",
    "list_type": "Write a list.",
    "tuple_type": "Write a list.",
    "dict_type": "Write a mapping of keys to values.",
    "model_type": "Write a mapping of keys to values.",
    "missing": "Add it.",
}
"""By pydantic's types of errors (https://docs.pydantic.dev/latest/errors/validation_errors/) and their context."""


def what_fits(kind: str, context: Mapping[str, Any]) -> str:
    """Return a sentence that says what would be right; empty where only the error's message can say it.

    The value that was refused is not in it.

    Args:
        kind: ``type`` of a pydantic error.
        context: Its ``ctx``.
    """
    words = _WORDS.get(kind, "")
    try:
        return words.format(**context)
    except KeyError:  # a validator of a plugin may raise errors of these kinds with a context of its own
        return ""
