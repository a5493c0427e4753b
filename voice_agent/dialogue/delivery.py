"""How wording is to be delivered: whether it may be interrupted, and what becomes of words over it and of itself."""

from __future__ import annotations

from typing import Any

from voice_agent.diagnostics import did_you_mean
from voice_agent.yaml_source import LocatedMap, Reader

DELIVERY_KEYS = ("interruptible", "while_uninterruptible", "record")
_CHOICES = {"while_uninterruptible": ("keep", "discard"), "record": ("heard", "full")}


def read_delivery(raw: LocatedMap, reader: Reader) -> dict[str, Any]:
    """Return what ``raw`` says of the delivery, by the names of `Wording`; what it does not say is left out."""
    found: dict[str, Any] = {}
    if "interruptible" in raw:
        found["interruptible"] = reader.flag(raw, "interruptible", True)
    for key, choices in _CHOICES.items():
        if key not in raw:
            continue
        value, line = raw[key], raw.key_lines[key]
        if value not in choices:
            remedy = did_you_mean(str(value), choices) or f"Write one of: {', '.join(choices)}."
            reader.error("delivery", f"`{key}` cannot be {value!r}.", remedy, line)
        else:
            found[key] = value
    if found.get("while_uninterruptible") == "discard" and found.get("interruptible") is not False:
        message = "`while_uninterruptible: discard` does nothing where speech may be interrupted."
        reader.warn("delivery_unused", message, "Add `interruptible: false`.", raw.key_lines["while_uninterruptible"])
    return found
