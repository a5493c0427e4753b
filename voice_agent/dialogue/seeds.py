"""What a channel or an application knows about a caller before the first word: metadata that fills project memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice_agent.dialogue.fields import MemoryRefused, coerce
from voice_agent.dialogue.memory import PROJECT, Schema

ENVELOPE_KEYS = ("user_id", "environment")
"""Go into the tracker's envelope instead of memory: who the caller is to the application, and where it runs."""
MAX_ENVELOPE_CHARS = 200


class BadMetadata(Exception):
    """Metadata cannot be used. The message names the keys and what would be right, and no value."""


def read_metadata(schema: Schema, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``metadata`` with each value as its field's type.

    Raises:
        BadMetadata: A key is no ``seed: true`` field of the project's memory, or a value does not fit. Names them all.
    """
    seeds = {field.name: field for field in schema.of(PROJECT) if field.seed}
    faults, values = [], {}
    for key, value in metadata.items():
        if key in ENVELOPE_KEYS:
            if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= MAX_ENVELOPE_CHARS:
                faults.append(f"{key} must be a text of 1 to {MAX_ENVELOPE_CHARS} printable characters.")
            values[key] = value
            continue
        declared = seeds.get(key)
        if declared is None:
            faults.append(f"{_named(key)} is {_why(schema, key)}.")
            continue
        try:
            values[key] = coerce(declared, value)
        except MemoryRefused:
            wanted = f"one of {', '.join(declared.enum_values)}" if declared.type == "categorical" else declared.type
            faults.append(f"{key} takes {wanted}.")
    if faults:
        raise BadMetadata(f"{' '.join(faults)} Metadata may have: {', '.join((*sorted(seeds), *ENVELOPE_KEYS))}.")
    return values


def _why(schema: Schema, key: str) -> str:
    declared = any(field.name == key for field in schema.of(PROJECT))
    return "declared without `seed: true`" if declared else "no field of the project's memory.yml"


def _named(key: str) -> str:
    return f"{key[:60]!r}"
