"""Putting the caller through to somebody else, as a step or a model asks for it.

A destination is a name; where it leads stands in ``integrations.yml`` and is known to neither skills nor models.
"""

from __future__ import annotations

import logging

from voice_agent.dialogue.blocks import TransferStep
from voice_agent.dialogue.cancellation import TurnCancelled
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.dispatch import record_tool
from voice_agent.dialogue.ending import Ending
from voice_agent.dialogue.events import to_json
from voice_agent.dialogue.fields import Field, MemoryRefused
from voice_agent.dialogue.framework_tools import TRANSFER
from voice_agent.dialogue.memory import Writer
from voice_agent.dialogue.outcome import Outcome
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.state import Frame
from voice_agent.dialogue.turn import Turn
from voice_agent.transfers import NOT_SUPPORTED, TransferResult

log = logging.getLogger(__name__)

RESULT_FIELD = "transfer_result"
"""A memory field of this name, in the skill or the project, is given the reason."""


class Transfers:
    """Puts callers of one conversation through.

    ::

        announcement ──▶ heard to its end ──▶ ringing ──▶ answered: the call is over for this agent
              │                   point of no return └──▶ failed: the reason is the result, the agent goes on
              └── the caller objects: rolled back, nothing is recorded
    """

    def __init__(self, core: Core, router: Router, ending: Ending) -> None:
        self._core, self._router, self._ending = core, router, ending

    async def step(self, turn: Turn, frame: Frame, step: TransferStep) -> TransferResult:
        """Put the caller through because a step says so. After a failure the block goes on with the next step.

        Raises:
            TurnCancelled: As of `to`. The skill is over then: whatever the caller says next, a step that would run
                before anybody has considered it must not put them through.
        """
        name = self._named(step)
        try:
            result = await self.to(turn, name, skill=frame.skill.id, step=step.id)
        except TurnCancelled:
            if frame in self._core.state.stack:
                self._router.drop(frame, reason="the transfer was cut off")
            raise
        turn.note_tool(TRANSFER, to_json({"destination": name}), result_json(result))
        if not result.completed and name in self._core.transfers and turn.reply.can_transfer:
            # They were told that they are being put through: whatever comes now must not be silence.
            turn.answer_due = True
        return result

    async def to(
        self, turn: Turn, name: str, *, skill: str | None, step: str = "", announced: bool = False
    ) -> TransferResult:
        """Announce that the caller is put through to ``name``, do it, record what came of it.

        Args:
            announced: It was said already.

        Raises:
            TurnCancelled: The caller objected before it was done, or has gone; nothing is recorded.
        """
        destination = self._core.transfers.get(name)
        result = NOT_SUPPORTED
        if destination is not None and turn.reply.can_transfer:
            turn.cancel.check()
            if not announced:
                self._core.say(turn, destination.utter, skill)
            await self._core.speaker.flush(turn)
            result = await turn.reply.transfer(destination.target(name))
        # From here to the end of the record nothing waits: what was done is never lost to a cancellation.
        outcome = Outcome(result.completed, result_json(result))
        record_tool(self._core.events, TRANSFER, to_json({"destination": name}), outcome, step=step)
        if result.completed:
            self._ending.handed_over()
        else:
            log.info("a transfer to %s failed: %s", name, result.reason.value)
            keep_result(self._core, RESULT_FIELD, result.reason.value, skill)
        return result

    def _named(self, step: TransferStep) -> str:
        given = step.destination
        return str(self._core.state.memory.read(given.namespace, given.name)) if isinstance(given, Field) else given


def keep_result(core: Core, name: str, value: str, skill: str | None) -> None:
    """Write what came of something into the memory field of that name, in the skill or the project, if there is one."""
    memory = core.state.memory
    declared = memory.schema.resolve(name, skill)
    if declared is None:
        return
    try:
        memory.write(declared, value, Writer.STEP)
    except MemoryRefused as fault:
        log.warning("%s is not kept: %s", name, fault)


def result_json(result: TransferResult) -> str:
    """Return the result as the model should read it."""
    if result.completed:
        return to_json({"ok": True})
    return to_json({"ok": False, "reason": result.reason.value, "hint": "The caller is still on the line with you."})
