"""A server's list of tools, made fit for the dialogue: bounded, and what could not work left out."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.mcp.arguments import Check, checker

log = logging.getLogger(__name__)

MAX_TOOLS = 500
"""Tools of one server that are looked at."""
MAX_DESCRIPTION_CHARS = 1000
MAX_SCHEMA_CHARS = 20_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]+")


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool as its server describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    check: Check


def read_listing(server: str, tools: Iterable[Any]) -> dict[str, ListedTool]:
    """Return the usable tools of a list, by name; what is left out is logged."""
    found: dict[str, ListedTool] = {}
    for number, tool in enumerate(tools):
        if number >= MAX_TOOLS:
            log.warning("MCP server %s lists more than %d tools; the rest is left out", server, MAX_TOOLS)
            break
        name = str(tool.name)[:128]
        schema = tool.input_schema
        try:
            if len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
                raise ValueError(f"its schema is longer than {MAX_SCHEMA_CHARS} characters")
            if not isinstance(schema, dict) or schema.get("type", "object") != "object":
                raise ValueError("its schema is not that of an object")
            parameters = {**schema, "type": "object", "properties": schema.get("properties") or {}}
            found[name] = ListedTool(
                name, in_one_line(tool.description or tool.title or name), parameters, checker(schema)
            )
        except (ValueError, TypeError, RecursionError) as fault:
            log.warning("MCP server %s: its tool %r is left out: %s", server, name, fault)
    return found


def in_one_line(text: str) -> str:
    """Return a server's text as one bounded line: it is data, and must not look like a section of a prompt."""
    line = " ".join(_CONTROL.sub(" ", text[: 4 * MAX_DESCRIPTION_CHARS]).split())
    return line if len(line) <= MAX_DESCRIPTION_CHARS else f"{line[:MAX_DESCRIPTION_CHARS]}…"
