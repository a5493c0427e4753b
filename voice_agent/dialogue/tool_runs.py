"""A run of a project's tool within a turn: what was said before it, what it came to, what is said of it."""

from __future__ import annotations

from typing import Any

from voice_agent.dialogue.core import Core
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.state import Frame
from voice_agent.dialogue.stepper import digest
from voice_agent.dialogue.tools import Tool
from voice_agent.dialogue.turn import Turn


class ToolRuns:
    """Runs tools for steps, for the model, and for a caller who has said yes."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def run(
        self, turn: Turn, frame: Frame, tool: Tool, arguments: dict[str, Any], *, step: str | None
    ) -> Outcome:
        """Run a tool whose gates are open, and say its ``on_success`` if it did what it is for.

        Args:
            step: The step that wants it; None where the model does.

        Raises:
            TurnCancelled: It was cut off and may run again.
        """
        # What was said before is heard while the tool works.
        await self._core.speaker.flush(turn)
        name = step or tool.name
        if step is None:
            turn.procedures += 1
        if step is not None and frame.cursor is not None:
            # From here on what an earlier run came to is no longer certain.
            frame.cursor.again.pop(step, None)
        key = f"{frame.skill.id} {frame.activation} {name} {digest(to_json(arguments))}"
        before = turn.results_before.pop(key, None)
        if before is not None:
            self._core.events.append("tool_result_reused", {"tool": tool.name})
        outcome = before or await self._core.dispatcher.run(
            tool,
            arguments,
            skill=frame.skill,
            step=name,
            activation=frame.activation,
            run=frame.runs.get(name, 0),
            cancel=turn.cancel,
        )
        if outcome.success:
            turn.results[key] = outcome
            if before is None:
                frame.runs[name] = frame.runs.get(name, 0) + 1
        on_success = frame.skill.constraint(tool.name).on_success
        if on_success is not None and outcome.achieved and not (before and on_success in turn.made_good):
            self._core.say(turn, on_success, frame.skill.id)
        return outcome
