"""Reads memory.yml and responses.yml."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from voice_agent.diagnostics import did_you_mean
from voice_agent.dialogue.delivery import DELIVERY_KEYS, read_delivery
from voice_agent.dialogue.fields import TYPE_ALIASES, Field, MemoryRefused, coerce
from voice_agent.dialogue.memory import PROJECT
from voice_agent.dialogue.names import Names
from voice_agent.dialogue.responses import Response, Variant, parse_template
from voice_agent.yaml_source import LocatedMap, Reader

_FIELD_KEYS = (
    "type", "description", "enum_values", "initial_value", "llm_settable", "pii", "anonymization", "seed", "mutable",
)  # fmt: skip


def read_memory(value: Any, namespace: str, reader: Reader) -> list[Field]:
    """Read a memory.yml: a flat map for ``project``, ``schema: {public, private}`` for a skill."""
    top = reader.mapping(value, "memory.yml")
    if namespace == PROJECT:
        schema = top.get("schema")
        entries = schema if isinstance(schema, LocatedMap) and len(top) == 1 and "type" not in schema else top
        return [f for name in entries if (f := _field(entries, name, PROJECT, True, reader)) is not None]
    reader.unknown(top, ["schema"], "A skill's memory.yml", strict=True)
    schema = reader.mapping(top.get("schema"), "`schema`")
    reader.unknown(schema, ["public", "private"], "`schema`", strict=True)
    found: list[Field] = []
    for group in ("public", "private"):
        entries = reader.mapping(schema.get(group), f"`{group}`")
        for name in entries:
            if any(f.name == name for f in found):
                reader.error("duplicate", f"{name!r} is both public and private.", "Keep one.", entries.key_lines[name])
            elif (declared := _field(entries, name, namespace, group == "public", reader)) is not None:
                found.append(declared)
    return found


def _field(entries: LocatedMap, name: str, namespace: str, public: bool, reader: Reader) -> Field | None:
    line = entries.key_lines[name]
    if not name.isidentifier():
        reader.error("field_name", f"{name!r} cannot be a field name.", "Use letters, digits and underscores.", line)
        return None
    raw_value = entries[name]
    if isinstance(raw_value, str):
        raw_value, type_name = None, raw_value
    else:
        type_name = ""
    raw = reader.mapping(raw_value, f"Field {name!r}", line)
    reader.unknown(raw, _FIELD_KEYS, f"Field {name!r}", strict=True)
    type_name = type_name or reader.text(raw, "type", "`type`") or "any"
    kind = TYPE_ALIASES.get(type_name)
    if kind is None:
        remedy = did_you_mean(type_name, TYPE_ALIASES) or "Types: text, categorical, bool, int, float, list, any."
        reader.error("field_type", f"Field {name!r} has the unknown type {type_name!r}.", remedy, line)
        return None
    choices = tuple(str(v) for v, _ in reader.items(raw.get("enum_values"), "`enum_values`"))
    if kind == "categorical" and not choices:
        reader.error("no_enum_values", f"Field {name!r} has nothing to choose from.", "Add `enum_values:`.", line)
    for key in ("mutable", "seed"):
        if key in raw and namespace != PROJECT:
            reader.error("project_only", f"`{key}` belongs to the root memory.yml.", "Remove it.", raw.key_lines[key])
    if "anonymization" in raw:
        remedy = "Write `pii: true`, which keeps it out of logs and hides it in the inspector, or leave it."
        message = f"`anonymization` of field {name!r} is not acted on."
        reader.warn("unused", message, remedy, raw.key_lines["anonymization"])
    declared = Field(
        namespace, name, kind, reader.text(raw, "description", "`description`"), choices, None, public,
        reader.flag(raw, "llm_settable", False), reader.flag(raw, "pii", False),
        reader.flag(raw, "seed", False), reader.flag(raw, "mutable", False),
    )  # fmt: skip
    if namespace == PROJECT and declared.llm_settable:
        reader.error("llm_project", "The model never writes project memory.", "Remove `llm_settable`.", line)
    return _with_initial(declared, raw, reader)


def _with_initial(declared: Field, raw: LocatedMap, reader: Reader) -> Field:
    if raw.get("initial_value") is None:
        return declared
    try:
        value = coerce(declared, raw["initial_value"])
    except MemoryRefused as fault:
        reader.error("initial_value", f"`initial_value`: {fault}", "", raw.key_lines["initial_value"])
        return declared
    return replace(declared, initial_value=value)


def read_responses(value: Any, names: Names, *, extra: frozenset[str] = frozenset()) -> dict[str, Response]:
    """Read a responses.yml. ``extra`` names placeholders that the engine fills by itself."""
    reader = names.reader
    top = reader.mapping(value, "responses.yml")
    reader.unknown(top, ["responses", "version"], "responses.yml")
    responses = reader.mapping(top.get("responses"), "`responses`")
    found: dict[str, Response] = {}
    for name in responses:
        line = responses.key_lines[name]
        if not name.startswith("utter_"):
            reader.error("name", f"The response {name!r} must begin with utter_.", f"Call it utter_{name}.", line)
        raw = responses[name]
        items = [(raw, line)] if isinstance(raw, str | LocatedMap) else reader.items(raw, f"`{name}`", line)
        variants = [v for item, at in items if (v := _variant(name, item, at or line, names, extra)) is not None]
        if not items:
            reader.error("empty", f"The response {name!r} has no wording.", "Add `- text: …`.", line)
        elif variants:
            found[name] = Response(name, tuple(variants))
    return found


def _variant(name: str, item: Any, line: int, names: Names, extra: frozenset[str]) -> Variant | None:
    reader = names.reader
    if isinstance(item, str):
        raw = LocatedMap(text=item)
        raw.line, raw.key_lines = line, {"text": line}
    else:
        raw = reader.mapping(item, f"A variant of {name!r}", line)
    reader.unknown(raw, ["text", "condition", "metadata", "channel", "rephrase", *DELIVERY_KEYS], f"`{name}`")
    text = raw.get("text")
    if not isinstance(text, str) or not text.strip():
        remedy = "Write what should be said; a text that contains ': ' must be quoted."
        reader.error("empty_text", f"A variant of {name!r} has no text.", remedy, raw.key_lines.get("text", line))
        return None
    template = parse_template(text.strip())
    at = raw.key_lines["text"]
    for reference in template.references:
        if reference.namespace:
            names.known(reference, at, f"{name!r}")
        elif reference.entry not in extra and not _is_known_bare(reference.entry, names):
            near = names.schema.suggestion(reference.entry, (names.skill, PROJECT))
            remedy = near or "Declare it in memory.yml, or write the reference in full."
            message = f"{name!r} has the placeholder {{{reference.entry}}}, but there is no such field."
            reader.error("placeholder", message, remedy, at)
    condition = names.condition(raw["condition"], raw.key_lines["condition"]) if "condition" in raw else None
    if "condition" in raw and condition is None:
        return None
    metadata = reader.mapping(raw.get("metadata"), "`metadata`", line)
    rephrase = reader.flag(metadata, "rephrase", False) or reader.flag(raw, "rephrase", False)
    delivery = read_delivery(metadata, reader) | read_delivery(raw, reader)
    channel = reader.text(raw, "channel", "`channel`") or None
    return Variant(template, condition, channel, rephrase=rephrase, **delivery)


def _is_known_bare(name: str, names: Names) -> bool:
    # The root's responses may be said by any skill, so a bare name may mean any skill's field.
    if names.skill == PROJECT:
        return any(f.name == name for f in names.schema)
    return names.schema.resolve(name, names.skill) is not None
