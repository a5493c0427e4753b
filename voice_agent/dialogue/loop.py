"""The runtime loop of one turn: deterministic steps, then the model only where judgment is needed.

advance ─▶ wait │ end
   │  ▲
   ▼  └──────────── results ◀─┐
prompt ─▶ model ─▶ tool calls ─┘
             └───▶ text only ─▶ wait

How the model is led is the matter of a workflow (`voice_agent.dialogue.workflows`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from voice_agent.dialogue.calls import CallRunner
from voice_agent.dialogue.cancellation import TurnCancelled
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.plugin_points import PluginPoint, TextPayload
from voice_agent.dialogue.prompt import PromptBuilder
from voice_agent.dialogue.prompt_sections import Prompt
from voice_agent.dialogue.responses import Wording
from voice_agent.dialogue.routing import Router
from voice_agent.dialogue.state import PendingCall
from voice_agent.dialogue.stepper import StepBudgetExceeded
from voice_agent.dialogue.steps import Next, StepRunner
from voice_agent.dialogue.turn import Turn
from voice_agent.dialogue.workflows.catalogue import WorkflowChoice
from voice_agent.dialogue.workflows.leading import Leading
from voice_agent.dialogue.workflows.thinker import Thinker
from voice_agent.llm.protocol import LanguageModel, ModelError

log = logging.getLogger(__name__)


class RuntimeLoop:
    """Runs turns of one conversation. One at a time; the conversation sees to that."""

    def __init__(
        self,
        core: Core,
        model: LanguageModel,
        prompts: PromptBuilder,
        now: Callable[[], str],
        choice: WorkflowChoice,
    ) -> None:
        self._core, self._choice, self.model = core, choice, model
        self.router = Router(core)
        self._steps = StepRunner(core, self.router)
        self._thinker = Thinker(core, model, prompts, CallRunner(core, self.router, self._steps), now)

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
        self._core.make_good(turn)
        try:
            if prepare is not None:
                prepare(turn)
            if not await self._fast_reply(turn, PluginPoint.FAST_REPLY):
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

    async def _fast_reply(self, turn: Turn, point: PluginPoint) -> bool:
        """Say what a plugin has to say without the model. Returns whether it had anything."""
        hooks = self._core.hooks
        if not turn.utterance or not hooks.modifies(point):
            return False
        if point is PluginPoint.AGENT_FAST_REPLY and turn.recollection is not None:
            await turn.recollection.into(turn)  # what was found may be all that the answer needs
        text = (await hooks.check(point, TextPayload(""), turn.cancel)).text.strip()
        if not text:
            return False
        turn.reply.deliver(Wording("", text))
        turn.answer_due, turn.considered = False, True
        return True

    def _fail(self, turn: Turn, fault: Exception) -> None:
        turn.error = f"{type(fault).__name__}: {fault}"
        if isinstance(fault, ModelError | StepBudgetExceeded):
            log.error("turn %s of conversation %s: %s", turn.id, self._core.events.conversation_id, turn.error)
        else:
            log.exception("turn %s of conversation %s failed", turn.id, self._core.events.conversation_id)
        turn.cancel.check()
        self._core.say(turn, "utter_internal_error")

    async def _run(self, turn: Turn) -> None:
        leading = Leading(self._thinker, self._choice.current)
        question = self._core.state.question
        if isinstance(question, PendingCall) and question.scratch:
            turn.carried = question.turn_id, question.scratch
        while True:
            following = await self._steps.advance(turn)
            if following is Next.ENDED or (following is Next.WAIT and not self._thinker.must_speak(turn)):
                return
            workflow = leading.now()
            if workflow.is_spent(turn):
                await workflow.conclude(turn)
                return
            if following is Next.FILL:
                await self._thinker.fill(turn)
                continue
            if turn.model_calls == 0 and await self._fast_reply(turn, PluginPoint.AGENT_FAST_REPLY):
                return
            if await workflow.step(turn):
                return

    def preview(self, turn: Turn) -> Prompt:
        """Return the prompt of the next model call of ``turn``; changes nothing."""
        return self._thinker.preview(turn, Leading(self._thinker, self._choice.current).now().sections)
