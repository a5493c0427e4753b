"""Checks what was read against a model of `voice_agent.config`, with the line of every fault."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from voice_agent.config_files.fitting import what_fits
from voice_agent.diagnostics import did_you_mean
from voice_agent.yaml_source import LocatedMap, Reader, line_of

Model = TypeVar("Model", bound=BaseModel)


def drop_unused(parent: LocatedMap, keys: Iterable[str], reader: Reader, by: str = "yet") -> None:
    """Drop ``keys``, which another engine acts on and we do not, each with a warning."""
    for key in keys:
        if key in parent:
            remedy = "Remove it, or leave it for another engine."
            reader.warn("unused", f"`{key}` is not acted on {by}.", remedy, parent.key_lines[key])
            del parent[key]


def validate(model: type[Model], value: LocatedMap, reader: Reader, *, skip_missing: bool = False) -> Model | None:
    """Return ``value`` as a ``model``; None if it cannot be one. Keys that no option has are reported and dropped.

    Args:
        skip_missing: What is missing was reported before.
    """
    try:
        return model.model_validate(value)
    except ValidationError as fault:
        errors = fault.errors(include_url=False)
    for error in errors:
        location, kind = error["loc"], error["type"]
        if kind == "extra_forbidden":
            _drop_unknown(model, value, location, reader)
        elif not (kind == "missing" and skip_missing):
            where = ".".join(str(part) for part in location)
            message = f"`{where}`: {error['msg']}."
            fits = "" if kind == "missing" else what_fits(kind, error.get("ctx", {}))
            remedy = f"{fits} It is {error['input']!r:.80}.".lstrip()
            reader.error(f"value.{kind}", message, remedy, line_of(value, location))
    if any(error["type"] != "extra_forbidden" for error in errors):
        return None
    # Only unknown keys were in the way, and they are reported and gone.
    return model.model_validate(value)


def _drop_unknown(model: type[BaseModel], value: LocatedMap, location: tuple[str | int, ...], reader: Reader) -> None:
    """Report a key that no option has: an error when it looks like a slip, else a warning; drop it."""
    parent: Any = value
    for part in location[:-1]:
        parent = parent[part]
    key, known = str(location[-1]), _siblings(model, location[:-1])
    near = did_you_mean(key, known)
    where = ".".join(str(part) for part in location[:-1])
    message = f"{f'`{where}`' if where else reader.path.name} has no key {key!r}."
    report = reader.error if near else reader.warn
    report("unknown_key", message, near or f"Known keys: {', '.join(sorted(known))}.", line_of(value, location))
    del parent[key]


def _siblings(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Names of the options that may stand at ``location``."""
    current: type[BaseModel] = model
    for part in location:
        field = current.model_fields.get(str(part))
        if field is None:
            continue
        inner = field.annotation
        options = [inner, *getattr(inner, "__args__", ())]
        current = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), current)
    return list(current.model_fields)
