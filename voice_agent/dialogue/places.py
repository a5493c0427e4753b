"""Where a conversation stands in its skills, in a few words: what the record of a turn's end says of it."""

from __future__ import annotations

from typing import Any

from voice_agent.dialogue.state import DialogueState, Frame


def places(state: DialogueState) -> list[dict[str, Any]]:
    """Return the stack of skills, the active one last: each ``{skill, interrupted?, blocks: [{block, step, done}]}``.

    Blocks are those the skill is in, the innermost last; ``step`` is the one to do next (None at the
    end), ``done`` the ids of those that were done, in that order.
    """
    return [_place(frame) for frame in state.stack]


def _place(frame: Frame) -> dict[str, Any]:
    blocks = [
        {"block": c.block.id, "step": None if c.step is None else c.step.id, "done": list(c.passed)}
        for c in frame.cursors
    ]
    found: dict[str, Any] = {"skill": frame.skill.id, "blocks": blocks}
    return {**found, "interrupted": True} if frame.interrupted else found
