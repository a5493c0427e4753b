"""A JSON schema for every kind of file, so that editors complete keys and mark slips."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voice_agent.authoring import settings_schemas, skill_schemas


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file."""

    title: str
    make: Callable[[], dict[str, Any]]


KINDS: Mapping[str, Kind] = {
    "agent": Kind("agent.yml: who the agent is, and its rules", settings_schemas.agent_schema),
    "integrations": Kind("integrations.yml: models, channels, server", settings_schemas.integrations_schema),
    "endpoints": Kind("endpoints.yml: model groups and the rephraser", skill_schemas.endpoints_schema),
    "memory": Kind("memory.yml of a project", skill_schemas.memory_schema),
    "skill-memory": Kind("memory.yml of a skill", skill_schemas.skill_memory_schema),
    "responses": Kind("responses.yml: configured wording", skill_schemas.responses_schema),
    "skill": Kind("Front matter of a skill.md", skill_schemas.skill_schema),
    "block": Kind("The YAML of an ordered block", skill_schemas.block_schema),
    "conversations": Kind("A file of conversation tests", settings_schemas.conversations_schema),
}


def schema(name: str) -> dict[str, Any]:
    """Return the schema of one kind of file.

    Raises:
        KeyError: There is no such kind.
    """
    kind = KINDS[name]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind.title, **kind.make()}


def as_text(name: str) -> str:
    """Return the schema of one kind of file as JSON text."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def write(folder: Path) -> list[Path]:
    """Write every schema into ``folder``, in place of older ones, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in KINDS:
        path = folder / f"{name}.json"
        path.write_text(as_text(name), encoding="utf-8")
        written.append(path)
    return written
