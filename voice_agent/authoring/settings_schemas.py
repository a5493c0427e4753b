"""JSON schemas of the files that pydantic models describe: agent.yml, integrations.yml, conversation tests.

What an option means stands under it in the code; it is read from there, so that editors show it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from voice_agent import config
from voice_agent.authoring import conversation_file, expectation_file
from voice_agent.authoring.conversation_file import ConversationFile
from voice_agent.config import AgentFile, Integrations

_TEXT_LIST = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}


def agent_schema() -> dict[str, Any]:
    """Return the schema of agent.yml, older spellings included."""
    schema = _schema(AgentFile, config)
    properties = schema["properties"]
    instructions = properties.pop("references_instructions")
    properties["references"] = {
        "type": "object",
        "description": instructions.get("description", ""),
        "properties": {"instructions": {"type": "string"}},
    }
    # Keys that are understood but not acted on, and those that may stand inside `agent:` as well.
    schema["additionalProperties"] = True
    identity = schema["$defs"]["AgentIdentity"]
    identity["properties"].update(rules=properties["rules"], references=properties["references"])
    identity["additionalProperties"] = True
    for name in ("voice_rules", "text_rules"):
        rules = schema["$defs"]["StyleOptions"]["properties"][name]
        rules["anyOf"] = [*_TEXT_LIST["anyOf"], {"type": "null"}]
    if "PromptOptions" in schema["$defs"]:
        schema["$defs"]["PromptOptions"]["additionalProperties"] = True
    return schema


def integrations_schema() -> dict[str, Any]:
    """Return the schema of integrations.yml. A channel may carry keys of other engines."""
    schema = _schema(Integrations, config)
    schema["additionalProperties"] = True
    for name in ("ChannelOptions", "Channels"):
        schema["$defs"][name]["additionalProperties"] = True
    servers = schema["properties"]["mcp_servers"]
    servers["type"] = ["object", "array"]
    server = schema["$defs"]["McpServerOptions"]["properties"]
    server["name"] = {"type": "string", "description": "Its name, where servers are written as a list."}
    server["type"] = {"type": "string", "description": "Older spelling of transport."}
    older = schema["$defs"]["ChannelOptions"]["properties"]
    older["interruptions"] = {
        "type": "object",
        "description": "Older spelling of turn_taking.barge_in and turn_taking.min_words.",
        "properties": {"enabled": {"type": "boolean"}, "min_words": {"type": "integer"}},
        "additionalProperties": False,
    }
    older["silence_timeout"] = {"type": "number", "description": "Older spelling of turn_taking.silence_timeout_s."}
    _allow_variables(schema)
    return schema


def conversations_schema() -> dict[str, Any]:
    """Return the schema of a file of conversation tests."""
    return _schema(ConversationFile, conversation_file, expectation_file)


def _schema(model: type[BaseModel], *modules: ModuleType) -> dict[str, Any]:
    schema = model.model_json_schema()
    documented = {name: texts for module in modules for name, texts in docstrings(module).items()}
    for name, definition in {**schema.get("$defs", {}), model.__name__: schema}.items():
        definition.pop("title", None)
        for key, option in definition.get("properties", {}).items():
            option.pop("title", None)
            if text := documented.get(name, {}).get(key):
                option["description"] = text
    return schema


def docstrings(module: ModuleType) -> dict[str, dict[str, str]]:
    """Return the texts under the attributes of each class of a module or package, inherited ones too, on one line."""
    own = dict(_own_docstrings(module))

    def whole(name: str) -> dict[str, str]:
        bases, texts = own.get(name, ((), {}))
        return {key: text for base in bases for key, text in whole(base).items()} | texts

    return {name: whole(name) for name in own}


def _own_docstrings(module: ModuleType) -> Iterator[tuple[str, tuple[tuple[str, ...], dict[str, str]]]]:
    """Yield each class's name, the names of its bases, and the texts under its own attributes."""
    for part in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield from _own_docstrings(importlib.import_module(f"{module.__name__}.{part.name}"))
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        texts: dict[str, str] = {}
        for before, after in zip(node.body, node.body[1:], strict=False):
            if not (isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                texts[before.target.id] = " ".join(str(after.value.value).replace("``", "`").split())
        yield node.name, (tuple(base.id for base in node.bases if isinstance(base, ast.Name)), texts)


def _allow_variables(schema: Any) -> None:
    """Let ``${NAME}`` stand where a number, a truth value or a path is wanted."""
    if isinstance(schema, dict):
        for option in schema.get("properties", {}).values():
            if option.get("type") in ("integer", "number", "boolean"):
                kept = {k: option.pop(k) for k in list(option) if k not in ("description", "default")}
                option["anyOf"] = [kept, {"type": "string", "pattern": r"\$\{\w+(:-[^}]*)?\}"}]
        for value in schema.get("$defs", {}).values():
            _allow_variables(value)
