"""One model call and its consequences, as every workflow needs them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

from voice_agent.dialogue.blocks import CollectStep, InstructionsStep, ListenStep
from voice_agent.dialogue.calls import After, CallRunner
from voice_agent.dialogue.core import Core
from voice_agent.dialogue.history import MAX_RECORDS
from voice_agent.dialogue.hooks import RetryModel
from voice_agent.dialogue.model_call import SET_FIELDS, TURN, ModelReply
from voice_agent.dialogue.offer import Offer, build_offer, fill_offer, fitting_offer
from voice_agent.dialogue.plugin_prompt import by_plugins
from voice_agent.dialogue.prompt import PromptBuilder
from voice_agent.dialogue.prompt_sections import Prompt, Section
from voice_agent.dialogue.recalling import recalled_section
from voice_agent.dialogue.turn import Turn
from voice_agent.llm.protocol import LanguageModel, Message, ModelError, Scope

log = logging.getLogger(__name__)

MAX_EMPTY_REPLIES = 2
MAX_RETRIES = 2
"""How often hooks may refuse the replies of one turn."""


class Thought(Enum):
    """What follows a model call."""

    WAIT = "wait"
    """The turn waits for the caller, or the call ends."""
    GO_ON = "go_on"
    STUCK = "stuck"
    """The model makes the same call again and again, or says nothing: another call would bring no more."""


class Thinker:
    """Asks the model of one conversation.

    Args:
        now: Date and time as the model should read them.
    """

    def __init__(
        self, core: Core, model: LanguageModel, prompts: PromptBuilder, calls: CallRunner, now: Callable[[], str]
    ) -> None:
        self.core, self._model, self._prompts, self._calls, self._now = core, model, prompts, calls, now

    def preview(self, turn: Turn, sections: Sequence[Section] = (), *, fill: bool = False) -> Prompt:
        """Return the prompt of the next model call of ``turn``; changes nothing.

        Args:
            sections: What the workflow adds.
            fill: The narrow call after a skill was started.
        """
        state = self.core.state
        if fill:
            offer = fill_offer(state, turn)
        else:
            recalls = self.core.recalls
            learnt = recalls is not None and recalls.knows_documents
            offer = build_offer(self.core.project, state, turn, self.core.transfers, learnt=learnt)
            if recalls is not None and recalls.procedures_above is not None:
                offer = fitting_offer(offer, turn.fitting, recalls.procedures_above)
        return self._prompt(turn, offer, sections, fill=fill)

    def _prompt(self, turn: Turn, offer: Offer, sections: Sequence[Section], *, fill: bool = False) -> Prompt:
        events, recalls = self.core.events.recent(MAX_RECORDS), self.core.recalls
        recalled = recalled_section(turn.recalled, recalls.prompt_tokens) if recalls and turn.recalled else None
        return self._prompts.build(
            self.core.state,
            turn,
            offer,
            events,
            voice=self.core.voice,
            now=self._now(),
            fill=fill,
            added=sections,
            recalled=recalled,
        )

    async def _ask(self, turn: Turn, prompt: Prompt, purpose: str) -> ModelReply:
        turn.considered, turn.fill_due = True, False
        await self.core.speaker.flush(turn)
        prompt, withheld = await by_plugins(prompt, self.core.hooks, turn.cancel)
        reply = await self.core.models.call(
            self._model, prompt.request, turn, purpose=purpose, sections=prompt.sections
        )
        turn.correction = ""
        return replace(reply, withheld=reply.withheld | withheld) if withheld else reply

    async def fill(self, turn: Turn) -> None:
        """Let the model read field values out of what started the skill; nothing else comes of it.

        A model that is not there for this costs nothing but the question that is asked anyway.
        """
        due, before = turn.answer_due, len(turn.scratch)
        prompt = self.preview(turn, fill=True)
        try:
            reply = await self._ask(turn, prompt, SET_FIELDS)
            if reply.calls:
                await self._calls.run(turn, prompt.offer, reply)
        except (ModelError, RetryModel) as fault:
            log.warning("the fields of a new skill were not filled: %s", fault)
        turn.answer_due, turn.silent = due, False
        del turn.scratch[before:]

    async def think(self, turn: Turn, sections: Sequence[Section] = ()) -> Thought:
        """Make one model call, run what it asks for through its gates, and put both into the turn's scratch.

        Raises:
            TurnCancelled: The turn was cancelled; what was done stays done.
            ModelError: The model failed.
        """
        if turn.recollection is not None:
            await turn.recollection.into(turn)
        prompt = self.preview(turn, sections)
        try:
            reply = await self._ask(turn, prompt, TURN)
            after = await self._calls.run(turn, prompt.offer, reply) if reply.calls else After.GO_ON
        except RetryModel as fault:
            return self._retry(turn, fault)
        if after is After.STUCK:
            log.warning("turn %s: the model repeats the same call", turn.id)
            return Thought.STUCK
        if after is After.ENDED:
            return Thought.WAIT
        if after is After.WAIT:
            return Thought.GO_ON if self.must_speak(turn) else Thought.WAIT
        if reply.calls:
            return Thought.GO_ON
        if reply.is_empty:
            turn.empty_replies += 1
            turn.answer_due = True
            return Thought.STUCK if turn.empty_replies >= MAX_EMPTY_REPLIES else Thought.GO_ON
        turn.scratch.append(Message("assistant", reply.text.strip()))
        return self._after_text(turn)

    async def answer(self, turn: Turn, sections: Sequence[Section]) -> bool:
        """Ask the model for an answer without giving it any tool. Returns whether it gave one.

        Raises:
            TurnCancelled: The turn was cancelled.
        """
        prompt = self._prompt(turn, Offer((), Scope(utterance=turn.utterance)), sections)
        said = len(turn.reply.said)
        try:
            reply = await self._ask(turn, prompt, TURN)
        except (ModelError, RetryModel) as fault:
            log.warning("turn %s: no closing answer: %s", turn.id, fault)
            return len(turn.reply.said) > said
        if not reply.text.strip():
            return False
        turn.scratch.append(Message("assistant", reply.text.strip()))
        turn.answer_due = False
        return True

    def _retry(self, turn: Turn, fault: RetryModel) -> Thought:
        """A hook wants another reply."""
        turn.retries += 1
        turn.answer_due, turn.correction = True, fault.feedback
        if turn.retries <= MAX_RETRIES:
            return Thought.GO_ON
        log.warning("turn %s: hooks refused %d replies", turn.id, turn.retries)
        return Thought.STUCK

    def _after_text(self, turn: Turn) -> Thought:
        """The model has spoken and asked for nothing."""
        turn.answer_due = False
        top = self.core.state.top
        step = top.cursor.step if top is not None and top.cursor is not None else None
        if top is not None and top.cursor is not None and isinstance(step, InstructionsStep):
            top.cursor.answered = True
        # A collect step may have to bring its question back; everything else waits for the caller.
        return Thought.GO_ON if isinstance(step, CollectStep) else Thought.WAIT

    def must_speak(self, turn: Turn) -> bool:
        """Return whether the model has to say something before the turn may wait.

        A caller who hears nothing cannot know that they were understood. Blocks that listen may.
        """
        top = self.core.state.top
        listens = top is not None and top.cursor is not None and isinstance(top.cursor.step, ListenStep)
        if not turn.is_owed_words or listens:
            return False
        turn.answer_due = True
        return True

    def give_up(self, turn: Turn) -> None:
        """Nothing more will come of the model in this turn: say so in configured wording, or ask again what was asked.

        Raises:
            TurnCancelled: The turn was cancelled.
        """
        if not self.ask_again(turn):
            self.core.say(turn, "utter_cannot_help")

    def ask_again(self, turn: Turn) -> bool:
        """Bring back the question of the block that waits for one. Returns whether there is any.

        Raises:
            TurnCancelled: The turn was cancelled.
        """
        turn.cancel.check()
        state = self.core.state
        top = state.top
        step = top.cursor.step if top is not None and top.cursor is not None else None
        if top is None or not isinstance(step, CollectStep) or state.question is not None:
            return False
        self.core.say(turn, "utter_not_understood")
        self.core.say(turn, step.utterance or f"utter_ask_{step.field.name}", top.skill.id)
        return True
