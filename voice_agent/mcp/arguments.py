"""Checks a call's arguments against the schema that a server gave for them, before anything is sent.

A schema comes from outside: nothing in it is fetched, and its regular expressions are left to the server, since one
written for it could hold up every call here for minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from voice_agent.dialogue.tools import ArgumentsRefused

MAX_ARGUMENT_CHARS = 50_000
"""Arguments of one call, as JSON."""
MAX_FAULTS = 5
MAX_REFERENCES = 2_000
"""How often one check follows a schema's references: a few that each refer twice to the next one have no end."""
_LEFT_TO_THE_SERVER = frozenset({"pattern", "patternProperties", "format", "$dynamicRef", "$recursiveRef"})

Check = Callable[[Mapping[str, Any]], dict[str, Any]]


def checker(schema: Mapping[str, Any]) -> Check:
    """Return what checks arguments against ``schema``.

    Raises:
        ValueError: It is no JSON schema.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    own = _without(schema)
    kind = validator_for(own)
    try:
        kind.check_schema(own)
    except SchemaError as fault:
        raise ValueError(f"its schema is none: {fault.message[:200]}") from fault
    taken = 0

    def follow(validator: Any, ref: Any, instance: Any, schema: Any) -> Iterator[Any]:
        nonlocal taken
        taken += 1
        if taken > MAX_REFERENCES:
            raise ArgumentsRefused("They cannot be checked: the tool's schema refers to itself too often.")
        yield from kind.VALIDATORS["$ref"](validator, ref, instance, schema)

    # An empty registry fetches nothing, whatever the schema refers to.
    counted: Any = extend(kind, {"$ref": follow})
    validator = counted(own, registry=Registry())

    def check(arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        try:
            size = len(json.dumps(given, ensure_ascii=False, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as fault:
            raise ArgumentsRefused("They are no JSON.") from fault
        if size > MAX_ARGUMENT_CHARS:
            raise ArgumentsRefused(f"They are too long: {size} characters, at most {MAX_ARGUMENT_CHARS}.")
        nonlocal taken
        taken, faults = 0, []
        try:
            for error in validator.iter_errors(given):
                where = ".".join(map(str, error.absolute_path))
                faults.append(f"{where}: {error.message[:200]}" if where else error.message[:200])
                if len(faults) == MAX_FAULTS:
                    break
        except ArgumentsRefused:
            raise
        except Exception as fault:
            raise ArgumentsRefused("They cannot be checked: the tool's schema is broken.") from fault
        if faults:
            raise ArgumentsRefused("; ".join(faults))
        return given

    return check


def _without(schema: Any, *, names: bool = False) -> Any:
    """Return the schema without what is left to the server. ``names``: the keys are those of properties."""
    if isinstance(schema, Mapping):
        kept = schema.items() if names else ((k, v) for k, v in schema.items() if k not in _LEFT_TO_THE_SERVER)
        return {
            key: value
            if key in ("const", "enum", "default", "examples") and not names
            else _without(value, names=key in ("properties", "$defs", "definitions", "dependentSchemas") and not names)
            for key, value in kept
        }
    return [_without(item) for item in schema] if isinstance(schema, list) else schema
