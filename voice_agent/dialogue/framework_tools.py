"""The tools that belong to the engine: names, descriptions and schemas. What they do is in `calls`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from voice_agent.dialogue.fields import Field
from voice_agent.llm.protocol import ToolSpec

START_SKILL = "start_skill"
RUN_BLOCK = "run_block"
SET_FIELDS = "set_fields"
COMPLETE = "complete"
CANCEL_SKILL = "cancel_skill"
LISTEN = "listen"
HANG_UP = "hangup"
TRANSFER = "transfer"
SEND_DIGITS = "send_digits"
SEARCH_KNOWLEDGE = "search_knowledge"
CANNOT_HELP = "cannot_help"
CONFIRM = "confirm"
DENY = "deny"

ALIASES: Mapping[str, str] = {"complete_skill": COMPLETE, "action_listen": LISTEN, "action_hangup": HANG_UP}
"""Older names a model may use out of habit."""

FRAMEWORK_TOOLS: Mapping[str, str] = {
    START_SKILL: "Start the skill that fits what the caller wants.",
    RUN_BLOCK: "Run one of the skill's fixed procedures when the instructions name it.",
    SET_FIELDS: "Write down what the caller has told you. Only what they said; never guess.",
    COMPLETE: "The current skill has done what the caller wanted.",
    CANCEL_SKILL: "The caller no longer wants what the current skill is doing.",
    LISTEN: "Wait for the caller without saying anything.",
    HANG_UP: "End the call. Only when the caller is done or says goodbye.",
    TRANSFER: "Put the caller through to somebody else. Only when they ask for it or the instructions say so.",
    SEND_DIGITS: "Press keys on the telephone, after what you have said. Only where a menu or the instructions ask.",
    SEARCH_KNOWLEDGE: "Search the reference texts for the answer to a question.",
    CANNOT_HELP: "The request is outside of what you can do.",
    CONFIRM: "The caller said yes to the question that is open.",
    DENY: "The caller said no to the question that is open.",
}

_JSON_TYPES: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "list": {"type": "array", "items": {}},
    "any": {},
}


def spec(
    name: str, properties: Mapping[str, Any] | None = None, *, required: Iterable[str] = (), description: str = ""
) -> ToolSpec:
    """Return the `ToolSpec` of a framework tool; ``description`` replaces the built-in one."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties or {}), "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return ToolSpec(name, description or FRAMEWORK_TOOLS[name], schema)


def choice(name: str, parameter: str, options: Iterable[str], description: str = "", *, about: str = "") -> ToolSpec:
    """Return a framework tool with one required parameter out of ``options``; ``about`` describes these."""
    schema: dict[str, Any] = {"type": "string", "enum": list(options)}
    if about:
        schema["description"] = about
    return spec(name, {parameter: schema}, required=[parameter], description=description)


def field_schema(declared: Field) -> dict[str, Any]:
    """Return the JSON schema of one memory field."""
    if declared.type == "categorical":
        schema: dict[str, Any] = {"type": "string", "enum": list(declared.enum_values)}
    else:
        schema = dict(_JSON_TYPES[declared.type])
    if declared.description:
        schema["description"] = declared.description
    return schema
