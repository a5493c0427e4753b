"""ReAct: think, act, look at the result, until there is enough for an answer. Capped twice, and a cap is an answer.

model ─▶ answer ──────────────────────────────▶ the turn waits
  ▲ └──▶ action ─▶ gates ─▶ result ─┐
  └─────────────────────────────────┘
        at most `max_iterations` times; `max_procedures_calls` actions run
        a limit is reached and the model is needed again ─▶ `at_limit`

(Yao et al., ReAct: Synergizing Reasoning and Acting in Language Models, 2022.) Whether the model has calls
of its own or writes tagged text is the matter of `voice_agent.llm.tool_binding`; here both look alike.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from voice_agent.config import ReactOptions
from voice_agent.dialogue.prompt_sections import Section, lines, shorten
from voice_agent.dialogue.state import PendingCall
from voice_agent.dialogue.turn import Turn
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig
from voice_agent.dialogue.workflows.thinker import Thinker, Thought
from voice_agent.llm.protocol import Message

log = logging.getLogger(__name__)

_METHOD = (
    "Work towards the answer in steps: decide what is missing, use one tool, look at its result, decide again.",
    "As soon as you have enough, answer. Do not call a tool for what you know already.",
    "If a result is an error, try another way once; then say plainly what could not be done.",
)
_LAST = (
    "No tool can be used any more in this turn.",
    "Answer the caller now with what you have, and say plainly what is missing.",
)
SPARE_CALLS = 10
"""Model calls beside the iterations that a turn may make to fill fields: a bound for what should not happen."""


class ReActAgentConfig(ReactOptions, AgenticWorkflowConfig):
    """Reason, act and observe within one turn."""

    workflow: ClassVar[str] = "react"

    def build(self, thinker: Thinker) -> ReAct:
        return ReAct(thinker, self)


class ReAct:
    """Implements `Workflow`."""

    def __init__(self, thinker: Thinker, options: ReactOptions) -> None:
        self._thinker, self._options = thinker, options
        self._iterations = 0

    @property
    def sections(self) -> tuple[Section, ...]:
        method = lines("react", "How you work", _METHOD)
        own = self._options.system_prompt.strip()
        return (replace(method, body=f"{own}\n{method.body}" if own else method.body),)

    def is_spent(self, turn: Turn) -> bool:
        most = self._options.max_iterations
        return self._iterations >= most or turn.model_calls >= most + SPARE_CALLS

    async def step(self, turn: Turn) -> bool:
        self._iterations += 1
        turn.procedure_limit = self._options.max_procedures_calls
        thought = await self._thinker.think(turn, self.sections)
        if turn.refused_procedures:
            await self._end(turn, "procedures")
            return True
        if thought is Thought.STUCK:
            await self._end(turn, "repeats")
            return True
        if thought is Thought.WAIT:
            self._keep_scratch(turn)
        return thought is Thought.WAIT

    async def conclude(self, turn: Turn) -> None:
        await self._end(turn, "iterations")

    async def _end(self, turn: Turn, limit: str) -> None:
        log.info("turn %s reached a limit of its workflow: %s", turn.id, limit)
        turn.note_limit(limit, self._thinker.core.events)
        # A block that waits for a value needs that and no essay.
        if self._thinker.ask_again(turn):
            return
        policy = self._options.at_limit
        if policy == "finalize" and await self._thinker.answer(turn, (*self.sections, _closing())):
            return
        if policy == "last_text" and turn.has_said:
            return
        turn.cancel.check()
        self._thinker.core.say(turn, "utter_limit_reached")

    def _keep_scratch(self, turn: Turn) -> None:
        """A call is held until the caller says yes: what led to it must not have to be found out again."""
        state = self._thinker.core.state
        question = state.question
        if isinstance(question, PendingCall) and question.asked == turn.number and question.step is None:
            tokens = self._thinker.core.agent.prompts.turn_tokens
            carried = turn.carried[1] if turn.carried is not None else ()
            question.scratch = tuple(_renumbered(shorten((*carried, *turn.scratch), tokens)))
            question.turn_id = turn.id


def _closing() -> Section:
    return lines("limit", "Now", _LAST)


def _renumbered(messages: Iterable[Message]) -> Iterable[Message]:
    """Give calls ids that no call of a later turn has. Providers may give out the same one twice; results follow."""
    ids: dict[str, str] = {}
    numbers = itertools.count()
    for message in messages:
        for call in message.tool_calls:
            ids[call.id] = f"call_k{next(numbers)}"
        calls = tuple(replace(call, id=ids[call.id]) for call in message.tool_calls)
        result = ids.get(message.tool_call_id or "", message.tool_call_id)
        yield replace(message, tool_calls=calls, tool_call_id=result)
