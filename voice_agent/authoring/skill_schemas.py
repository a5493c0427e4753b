"""JSON schemas of the files that the dialogue's own readers check: memory, responses, skills, endpoints.

A test feeds each reader a key that it does not know and compares what it says it knows with these.
"""

from __future__ import annotations

from typing import Any

from voice_agent.dialogue.fields import TYPE_ALIASES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no", "on", "off"]}]}
_CONDITION: Schema = {
    "type": ["string", "boolean"],
    "description": "One line of and, or, not and comparisons over session.<skill id or project>.<entry>.",
}
_RESPONSE: Schema = {"type": "string", "pattern": "^utter_", "description": "Name of a response."}


def _object(properties: Schema, *, required: tuple[str, ...] = (), closed: bool = True, about: str = "") -> Schema:
    made: Schema = {"type": "object", "properties": properties}
    if closed:
        made["additionalProperties"] = False
    if required:
        made["required"] = list(required)
    return made if not about else {**made, "description": about}


def _map_of(value: Schema, pattern: str = "^[A-Za-z_]\\w*$") -> Schema:
    return {"type": "object", "patternProperties": {pattern: value}, "additionalProperties": False}


def _list_of(value: Schema) -> Schema:
    return {"type": "array", "items": value}


def _about(text: str, schema: Schema) -> Schema:
    return {**schema, "description": text}


# --- memory ------------------------------------------------------------------------------------


def _field(*, project: bool) -> Schema:
    properties: Schema = {
        "type": {"enum": list(TYPE_ALIASES), "default": "any"},
        "description": _about("Tells the model what the field holds.", _TEXT),
        "enum_values": _about("What a categorical field may be.", _list_of({"type": ["string", "number", "boolean"]})),
        "initial_value": {"description": "Value while nothing else is written."},
        "llm_settable": _about("The model may write it at any time while the skill is active.", _FLAG),
        "pii": _about("Personal data: kept out of logs.", _FLAG),
        "anonymization": {},
    }
    if project:
        properties["seed"] = _about("Filled from what the channel knows when a session begins.", _FLAG)
        properties["mutable"] = _about("May be written more than once in a session.", _FLAG)
        del properties["llm_settable"]
    return {"anyOf": [_object(properties), {"enum": list(TYPE_ALIASES)}, {"type": "null"}]}


def memory_schema() -> Schema:
    """Return the schema of the root memory.yml."""
    return _map_of(_field(project=True))


def skill_memory_schema() -> Schema:
    """Return the schema of a skill's memory.yml."""
    fields = {"anyOf": [_map_of(_field(project=False)), {"type": "null"}]}
    public = _about("Readable by other skills; kept until the skill starts again.", fields)
    private = _about("Readable by this skill only; forgotten when it ends.", fields)
    return _object({"schema": _object({"public": public, "private": private})}, required=("schema",))


# --- responses ---------------------------------------------------------------------------------


_DELIVERY: Schema = {
    "interruptible": _about("false: must be heard whole.", _FLAG),
    "while_uninterruptible": _about(
        "What the caller says meanwhile: kept and answered afterwards, or discarded.", {"enum": ["keep", "discard"]}
    ),
    "record": _about(
        "What the model sees of it later: what was heard, or all of it even if it was cut.", {"enum": ["heard", "full"]}
    ),
}


def responses_schema() -> Schema:
    """Return the schema of a responses.yml."""
    metadata = _object({"rephrase": _FLAG, **_DELIVERY}, closed=False)
    variant = _object(
        {
            "text": _about("What is said. {entry} and {session.<skill>.<entry>} are filled in.", _TEXT),
            "condition": _CONDITION,
            "channel": _about("Only for callers of this channel.", _TEXT),
            **_DELIVERY,
            "rephrase": _about("true: the model may reword it.", _FLAG),
            "metadata": metadata,
        },
        required=("text",),
        closed=False,
    )
    one = {"anyOf": [_TEXT, variant]}
    wording = {"anyOf": [_TEXT, variant, {**_list_of(one), "minItems": 1}]}
    return _object({"version": {}, "responses": _map_of(wording, "^utter_")}, closed=False)


# --- skill.md ----------------------------------------------------------------------------------


def _completion() -> Schema:
    criteria = _about("What must be true, in words.", {"anyOf": [_TEXT, _list_of(_TEXT)]})
    return {"anyOf": [_CONDITION, _object({"condition": _CONDITION, "criteria": criteria})]}


def _constraint() -> Schema:
    confirmation = _object(
        {"enabled": _FLAG, "utter_for_confirmation": _RESPONSE, "utter_on_user_denial": _RESPONSE},
        about="The caller must say yes before the tool runs.",
    )
    return _object(
        {
            "requires": _about("The tool is offered and runs only while this holds.", _CONDITION),
            "requires_confirmation": {"anyOf": [{"type": "boolean"}, confirmation]},
            "on_success": _about("Response said after the tool has run, unless its result has `ok: false`.", _RESPONSE),
            "description": _about("Replaces the tool's description.", _TEXT),
            "interruptible": _about("false: the tool finishes when the caller barges in.", _FLAG),
            "uninterruptible": _about("The opposite of interruptible.", _FLAG),
        }
    )


def skill_schema() -> Schema:
    """Return the schema of the front matter of a skill.md."""
    trigger = _object({"on": {"enum": ["activate"]}, "when": _CONDITION})
    managed = _about("true: the engine starts the skill, the model does not see it.", _FLAG)
    return _object(
        {
            "name": _about("What people call the skill.", _TEXT),
            "description": _about("When to start it. The model chooses by this.", _TEXT),
            "examples": _about("What callers say who want it.", _list_of({"type": ["string", "number"]})),
            "requires": _about("The skill can be started only while this holds.", _CONDITION),
            "complete_when": _about("The skill is done as soon as this holds.", _completion()),
            "import_tools": _about("Shared tools, and mcp/<server>:<tool>.", _list_of(_TEXT)),
            "tool_constraints": _list_of(_map_of(_constraint(), ".")),
            "utter": _about("Responses that are said by themselves.", _list_of(_map_of(trigger, "^utter_"))),
            "workflow": _about("How the model is led while the skill is active: mantle, react or a plugin's.", _TEXT),
            "routing": _object({"engine_managed": managed}),
        },
        required=("name", "description"),
        closed=False,
    )


# --- ordered blocks ----------------------------------------------------------------------------


def _step(kind: str, value: Schema, extra: Schema | None = None, *, next: bool = True) -> Schema:
    properties: Schema = {"id": _about("Unique in the block.", {"type": ["string", "number"]}), kind: value}
    properties.update(extra or {})
    if next:
        properties["next"] = {"$ref": "#/$defs/next"}
    return _object(properties, required=(kind,))


def block_schema() -> Schema:
    """Return the schema of the YAML in an ordered block."""
    target = {"type": "string", "pattern": r"^@?((skill|block)\.)?\w[\w-]*$"}
    arguments = _about("Values, or session.<skill>.<entry>. Others come from memory by name.", {"type": "object"})
    steps = [
        _step("instructions", _about("What the model should do here.", _TEXT), {"complete_when": _completion()}),
        _step(
            "collect",
            _about("Field of this skill that the caller is asked for.", _TEXT),
            {"utterance": _RESPONSE, "description": _TEXT},
        ),
        _step(
            "action",
            {"type": "string", "pattern": "^(utter_|action_listen$|action_hangup$|hangup$|listen$)"},
            _DELIVERY,
        ),
        _step(
            "execute_tool",
            _about("A tool of the skill, listen, hangup, transfer or send_digits.", _TEXT),
            {"args": arguments, "arguments": arguments},
        ),
        _step("noop", {"enum": [True]}),
        _step("set_memory", _about("Fields and the values they get.", {"type": "object"})),
        _step("call", _about("@skill.<id> or @block.<id>; comes back.", target)),
        _step("link", _about("@skill.<id> or @block.<id>; does not come back.", target), next=False),
        _object({"id": {"const": "END"}}, required=("id",)),
    ]
    then: Schema = {"type": ["string", "number"], "description": "Id of a step, or END."}
    branch = {
        "anyOf": [
            _object({"if": _CONDITION, "then": then}, required=("if", "then")),
            _object({"else": then}, required=("else",)),
        ]
    }
    return {
        **_object(
            {"name": _TEXT, "description": _TEXT, "steps": {**_list_of({"anyOf": steps}), "minItems": 1}},
            required=("steps",),
            closed=False,
        ),
        "$defs": {"next": {"anyOf": [{"type": "string"}, _list_of(branch)]}},
    }


# --- endpoints.yml -----------------------------------------------------------------------------


def endpoints_schema() -> Schema:
    """Return the schema of endpoints.yml: what is acted on; everything else may stand there too."""
    model = _object(
        {
            "provider": _TEXT,
            "model": _TEXT,
            "api_key": _about("${NAME}; never the key itself.", {"type": "string", "pattern": r"^\$\{\w+\}$"}),
            "api_key_env": _about("Name of the variable with the key.", _TEXT),
            "base_url": _TEXT,
            "api_base": _TEXT,
            "temperature": {"type": ["number", "string"]},
            "max_tokens": {"type": ["integer", "string"]},
            "timeout": {},
        },
        required=("provider", "model"),
        closed=False,
    )
    group = _object({"id": _TEXT, "models": _list_of(model), "router": {}}, required=("id", "models"), closed=False)
    nlg = _object({"type": _TEXT, "llm": _object({"model_group": _TEXT}, closed=False)}, closed=False)
    return _object({"model_groups": _list_of(group), "nlg": nlg}, closed=False)
