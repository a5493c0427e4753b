"""The tools of a project as a program may call them beside a conversation: through the same gates, without a model.

A tool that a caller must say yes to is not among them: there is nobody here who could.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.dialogue.cancellation import CancelToken
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.project import Skill
from voice_agent.dialogue.tools import Tool

DIRECT = "direct"
"""What stands for a step in the record of such a run."""


@dataclass(frozen=True, slots=True)
class DirectTool:
    """A tool whose gate is open now, and the skill that it belongs to."""

    skill: Skill
    tool: Tool

    @property
    def description(self) -> str:
        """What its skill says of it, or it of itself."""
        return self.skill.constraint(self.tool.name).description or self.tool.description


class DirectTools:
    """Those of one conversation."""

    def __init__(self, core: Core) -> None:
        self._core, self._runs = core, 0

    def open(self) -> Mapping[str, DirectTool]:
        """Return the tools whose gates are open now; one with the name of another has its skill's before it."""
        read = self._core.state.memory.read
        found: dict[str, DirectTool] = {}
        origins: dict[str, tuple[Any, Any]] = {}
        for skill in self._core.project.skills.values():
            if skill.lifecycle or not (skill.requires is None or skill.requires.holds(read)):
                continue
            for name, tool in skill.tools.items():
                constraint, current = skill.constraint(name), tool.current()
                shut = constraint.requires is not None and not constraint.requires.holds(read)
                if current is None or shut or constraint.confirmation is not None:
                    continue
                origin = (tool.path, getattr(tool, "remote", None))
                if name not in found:
                    found[name], origins[name] = DirectTool(skill, current), origin
                elif origins[name] != origin:
                    found[f"{skill.id}.{name}"] = DirectTool(skill, current)
        return found

    async def run(self, name: str, arguments: Mapping[str, Any], cancel: CancelToken) -> Outcome:
        """Run one of them; asked again whether its gate is open.

        Raises:
            TurnCancelled: Cancelled before it was done.
        """
        wanted = self.open().get(name)
        if wanted is None:
            return Outcome(False, to_json({"error": f"There is no tool {name!r} here, or not now."}))
        self._runs += 1
        # Each run is a wish of its own: its number keeps the keys against repeats apart.
        return await self._core.dispatcher.run(
            wanted.tool,
            arguments,
            skill=wanted.skill,
            step=f"{DIRECT}.{wanted.tool.name}",
            activation=self._core.state.turn,
            run=self._runs,
            cancel=cancel,
        )
