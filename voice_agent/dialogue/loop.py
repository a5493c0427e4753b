"""The runtime loop of one turn: deterministic steps, then the model only where judgment is needed.

advance ─▶ wait │ end
   │  ▲
   ▼  └──────────── results ◀─┐
prompt ─▶ model ─▶ tool calls ─┘
             └───▶ text only ─▶ wait
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from voice_agent.dialogue.blocks import CollectStep, InstructionsStep, ListenStep
from voice_agent.dialogue.calls import After, CallRunner
from voice_agent.dialogue.cancellation import TurnCancelled
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.history import MAX_RECORDS
from voice_agent.dialogue.hooks import RetryModel
from voice_agent.dialogue.model_call import SET_FIELDS, TURN, ModelReply
from voice_agent.dialogue.offer import build_offer, fill_offer
from voice_agent.dialogue.prompt import PromptBuilder
from voice_agent.dialogue.prompt_sections import Prompt
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.stepper import StepBudgetExceeded
from voice_agent.dialogue.steps import Next, StepRunner
from voice_agent.dialogue.turn import Turn
from voice_agent.llm.protocol import LanguageModel, Message, ModelError

log = logging.getLogger(__name__)

MAX_EMPTY_REPLIES = 2
MAX_RETRIES = 2
"""How often hooks may refuse the replies of one turn."""


class RuntimeLoop:
    """Runs turns of one conversation. One at a time; the conversation sees to that."""

    def __init__(self, core: Core, model: LanguageModel, prompts: PromptBuilder, now: Callable[[], str]) -> None:
        self._core, self._model, self._prompts, self._now = core, model, prompts, now
        self.router = Router(core)
        self._steps = StepRunner(core, self.router)
        self._calls = CallRunner(core, self.router, self._steps)

    async def run(self, turn: Turn, prepare: Callable[[Turn], None] | None = None) -> None:
        """Run ``turn`` until it waits for the caller, or the call is to be ended.

        Faults of models, tools and blocks are told to the caller in the configured line and to
        the operator in ``turn.error``.

        Args:
            prepare: Runs first; puts a lifecycle skill on the stack.

        Raises:
            TurnCancelled: The turn was cancelled. What was done stays done and recorded.
        """
        self._core.speaker.attach(turn)
        try:
            if prepare is not None:
                prepare(turn)
            await self._run(turn)
        except TurnCancelled:
            raise
        except StepBudgetExceeded as fault:
            self._fail(turn, fault)
            top = self._core.state.top
            if top is not None:
                # It would run in the same circle again in the next turn.
                self.router.drop(top, reason="step budget exceeded")
        except Exception as fault:  # noqa: BLE001 - a caller never hears an exception
            self._fail(turn, fault)
        await self._core.speaker.flush(turn)

    def _fail(self, turn: Turn, fault: Exception) -> None:
        turn.error = f"{type(fault).__name__}: {fault}"
        if isinstance(fault, ModelError | StepBudgetExceeded):
            log.error("turn %s of conversation %s: %s", turn.id, self._core.events.conversation_id, turn.error)
        else:
            log.exception("turn %s of conversation %s failed", turn.id, self._core.events.conversation_id)
        turn.cancel.check()
        self._core.say(turn, "utter_internal_error")

    async def _run(self, turn: Turn) -> None:
        while True:
            following = await self._steps.advance(turn)
            if following is Next.ENDED or (following is Next.WAIT and not self._must_speak(turn)):
                return
            if turn.model_calls >= self._core.agent.max_model_iterations:
                log.warning("turn %s used all of its %d model calls", turn.id, turn.model_calls)
                self._give_up(turn)
                return
            if following is Next.FILL:
                await self._fill(turn)
            elif await self._think(turn):
                return

    def _must_speak(self, turn: Turn) -> bool:
        """Return whether the model has to say something before the turn may wait.

        A caller who hears nothing cannot know that they were understood. Blocks that listen may.
        """
        top = self._core.state.top
        listens = top is not None and top.cursor is not None and isinstance(top.cursor.step, ListenStep)
        if not turn.is_owed_words or listens:
            return False
        turn.answer_due = True
        return True

    def preview(self, turn: Turn, *, fill: bool = False) -> Prompt:
        """Return the prompt of the next model call of ``turn``; changes nothing."""
        state = self._core.state
        offer = fill_offer(state, turn) if fill else build_offer(self._core.project, state, turn)
        events = self._core.events.recent(MAX_RECORDS)
        return self._prompts.build(state, turn, offer, events, voice=self._core.voice, now=self._now(), fill=fill)

    async def _ask(self, turn: Turn, *, fill: bool) -> tuple[ModelReply, After]:
        """Call the model and run what it asks for."""
        prompt = self.preview(turn, fill=fill)
        turn.considered, turn.fill_due = True, False
        await self._core.speaker.flush(turn)
        purpose = SET_FIELDS if fill else TURN
        reply = await self._core.models.call(
            self._model, prompt.request, turn, purpose=purpose, sections=prompt.sections
        )
        turn.correction = ""
        if not reply.calls:
            return reply, After.GO_ON
        return reply, await self._calls.run(turn, prompt.offer, reply)

    async def _fill(self, turn: Turn) -> None:
        """Let the model read field values out of what started the skill; nothing else comes of it.

        A model that is not there for this costs nothing but the question that is asked anyway.
        """
        due, before = turn.answer_due, len(turn.scratch)
        try:
            await self._ask(turn, fill=True)
        except (ModelError, RetryModel) as fault:
            log.warning("the fields of a new skill were not filled: %s", fault)
        turn.answer_due, turn.silent = due, False
        del turn.scratch[before:]

    async def _think(self, turn: Turn) -> bool:
        """One model call and its consequences. Returns whether the turn waits now."""
        try:
            reply, after = await self._ask(turn, fill=False)
        except RetryModel as fault:
            return self._retry(turn, fault)
        if after is After.STUCK:
            log.warning("turn %s: the model repeats the same call", turn.id)
            self._give_up(turn)
            return True
        if after is After.ENDED:
            return True
        if after is After.WAIT:
            return not self._must_speak(turn)
        if reply.calls:
            return False
        if reply.is_empty:
            turn.empty_replies += 1
            turn.answer_due = True
            if turn.empty_replies >= MAX_EMPTY_REPLIES:
                self._give_up(turn)
                return True
            return False
        turn.scratch.append(Message("assistant", reply.text.strip()))
        return self._after_text(turn)

    def _retry(self, turn: Turn, fault: RetryModel) -> bool:
        """A hook wants another reply. Returns whether the turn gives up and waits."""
        turn.retries += 1
        turn.answer_due, turn.correction = True, fault.feedback
        if turn.retries <= MAX_RETRIES:
            return False
        log.warning("turn %s: hooks refused %d replies", turn.id, turn.retries)
        self._give_up(turn)
        return True

    def _after_text(self, turn: Turn) -> bool:
        """The model has spoken and asked for nothing. Returns whether the turn waits now."""
        turn.answer_due = False
        top = self._core.state.top
        step = top.cursor.step if top is not None and top.cursor is not None else None
        if top is not None and top.cursor is not None and isinstance(step, InstructionsStep):
            top.cursor.answered = True
        # A collect step may have to bring its question back; everything else waits for the caller.
        return not isinstance(step, CollectStep)

    def _give_up(self, turn: Turn) -> None:
        turn.cancel.check()
        state = self._core.state
        top = state.top
        step = top.cursor.step if top is not None and top.cursor is not None else None
        if top is not None and isinstance(step, CollectStep) and state.question is None:
            self._core.say(turn, "utter_not_understood")
            self._core.say(turn, step.utterance or f"utter_ask_{step.field.name}", top.skill.id)
        else:
            self._core.say(turn, "utter_cannot_help")
