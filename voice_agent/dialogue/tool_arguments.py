"""What a step gives its tool, and how a held call is described to whoever words the question about it."""

from __future__ import annotations

from typing import Any

from voice_agent.dialogue.blocks import ToolStep
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.memory import Memory
from voice_agent.dialogue.project import Skill
from voice_agent.dialogue.tools import Tool


def step_arguments(tool: Tool, step: ToolStep, skill: Skill, memory: Memory) -> dict[str, Any]:
    """Return the arguments of a step: as written there, else from memory by name."""
    found: dict[str, Any] = {}
    for name in tool.parameter_names:
        given = step.arguments.get(name)
        declared = given if isinstance(given, Field) else memory.schema.resolve(name, skill.id)
        if name in step.arguments and not isinstance(given, Field):
            found[name] = given
        elif declared is not None:
            value = memory.read(declared.namespace, declared.name)
            if value is not None:
                found[name] = value
    return found


def call_in_words(skill: Skill, tool: str, arguments: dict[str, Any]) -> str:
    """Return what a held call is about, for a model that words the question."""
    found = skill.tools.get(tool)
    description = (skill.constraint(tool).description or found.live.description) if found else tool
    return f"{description.strip()} {to_json(arguments) if arguments else ''}".strip()
