"""Pressing keys on the telephone line, as a step or a model asks for it: another company's menu, an extension."""

from __future__ import annotations

import logging

from voice_agent.dialogue.blocks import SendDigitsStep
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.dispatch import record_tool
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.fields import Field
from voice_agent.dialogue.framework_tools import SEND_DIGITS
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.state import Frame
from voice_agent.dialogue.transferring import keep_result
from voice_agent.dialogue.turn import Turn
from voice_agent.digits import NO_DIGITS, BadDigits, DigitsReason, DigitsResult, read_digits

log = logging.getLogger(__name__)

RESULT_FIELD = "digits_result"
"""A memory field of this name, in the skill or the project, is given the reason."""


class Presses:
    """Keys of one conversation. What is recorded of them is how many: they may be a card's number."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def step(self, turn: Turn, frame: Frame, step: SendDigitsStep) -> DigitsResult:
        """Press keys because a step says so; the block goes on with the next step either way.

        Raises:
            TurnCancelled: As of `press`. The step is still to come then: whoever speaks on the line is a menu, and the
                key is meant for what it says.
        """
        given = step.digits
        found = self._core.state.memory.read(given.namespace, given.name) if isinstance(given, Field) else given
        result = await self.press(turn, "" if found is None else str(found), skill=frame.skill.id, step=step.id)
        turn.note_tool(SEND_DIGITS, "{}", result_json(result))
        return result

    async def press(self, turn: Turn, digits: str, *, skill: str | None, step: str = "") -> DigitsResult:
        """Press them once everything said before has been heard, and record what came of it.

        Raises:
            TurnCancelled: The other side spoke before the first key, or has gone; nothing is recorded.
        """
        try:
            digits = read_digits(digits)
        except BadDigits as fault:
            log.warning("step %s of %s presses nothing: %s", step, skill, fault)
            result = DigitsResult(DigitsReason.BAD_DIGITS)
        else:
            result = NO_DIGITS
            if turn.reply.can_send_digits:
                turn.cancel.check()
                await self._core.speaker.flush(turn)
                result = await turn.reply.send_digits(digits)
        # From here to the end of the record nothing waits: what was done is never lost to a cancellation.
        outcome = Outcome(result.sent, result_json(result))
        record_tool(self._core.events, SEND_DIGITS, to_json({"keys": len(digits)}), outcome, step=step)
        keep_result(self._core, RESULT_FIELD, result.reason.value, skill)
        # Keys are an answer: what a menu says next is waited for, and not spoken over.
        turn.silent, turn.answer_due = turn.silent or result.sent, not result.sent
        return result


def result_json(result: DigitsResult) -> str:
    """Return the result as the model should read it."""
    return to_json({"ok": True} if result.sent else {"ok": False, "reason": result.reason.value})
