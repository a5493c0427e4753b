"""Reading the JSON that far ends send. Whatever it holds, no more than a `BadMessage` comes of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice_agent.channels.messages import BadMessage, Key, whole
from voice_agent.digits import KEYS

MAX_PARAMETERS = 64
"""Parameters of a stream that are kept."""
MAX_PARAMETER_CHARACTERS = 1000


def text_at(body: Mapping[str, Any], key: str) -> str:
    """Return a text field, or "" where there is none."""
    value = body.get(key)
    return whole(value)[:MAX_PARAMETER_CHARACTERS] if isinstance(value, str) else ""


def object_at(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a field that is an object, or an empty one."""
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def number_at(body: Mapping[str, Any], key: str, default: int) -> int:
    """Return a whole number, written as one or as text; ``default`` where the field is missing.

    Raises:
        BadMessage: It is no such number, or one of more than nine digits.
    """
    value = body.get(key, default)
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise BadMessage("bad_message", f'"{key}" must be a whole number.')
    return int(text)


def parameters_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that are text, number or truth value, as text."""
    plain = {key: value for key, value in body.items() if isinstance(value, str | int | float)}
    some = list(plain.items())[:MAX_PARAMETERS]
    return {whole(key): whole(str(value))[:MAX_PARAMETER_CHARACTERS] for key, value in some}


def read_key(digit: str) -> Key:
    """Return the key that was pressed.

    Raises:
        BadMessage: There is no such key.
    """
    if len(digit) != 1 or digit.upper() not in KEYS:
        raise BadMessage("bad_key", "No key.")
    return Key(digit.upper())


def whole_samples(pcm: bytes) -> bytes:
    """Return the audio.

    Raises:
        BadMessage: It ends with half a sample.
    """
    if len(pcm) % 2:
        raise BadMessage("bad_audio", "Half a sample.")
    return pcm
