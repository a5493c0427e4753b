"""Lets the model begin on words that are stable, before it is certain that the caller has finished."""

from __future__ import annotations

import asyncio
import logging

from voice_agent.call.turns import TurnRunner
from voice_agent.call.utterance import Utterance
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.reply import Conversation, InputKind, Speculating, UserInput

log = logging.getLogger(__name__)


class Speculator:
    """At most one speculation at a time. Only `run` awaits the dialogue, so that it closes what it opened."""

    def __init__(self, conversation: Conversation, runner: TurnRunner) -> None:
        self._conversation = conversation if isinstance(conversation, Speculating) else None
        self._runner = runner
        self._utterance: Utterance | None = None
        self._made = 0
        self._wanted = ""
        self._work = asyncio.Event()
        self._token = CancelToken()

    def stable(self, utterance: Utterance, text: str) -> None:
        """These are the caller's words, if they have finished."""
        if self._conversation is None or not self._conversation.speculations_per_utterance:
            return
        if self._runner.current is not None or self._runner.inbox:
            return
        if utterance is not self._utterance:
            self._utterance, self._made = utterance, 0
        if self._made >= self._conversation.speculations_per_utterance:
            return
        self._made += 1
        self._token.cancel(CancelReason.SUPERSEDED)
        self._token = CancelToken()
        self._wanted = f"{utterance.before} {text}".strip()
        self._work.set()

    def spoiled(self) -> None:
        """The caller goes on: the words are not what they have said."""
        if self._runner.current is None:
            self._wanted = ""
            self._token.cancel(CancelReason.SUPERSEDED)

    def forget(self) -> None:
        """The call is over."""
        self._utterance = None
        self._token.cancel(CancelReason.HANG_UP)

    async def run(self) -> None:
        """Speculate until cancelled."""
        while True:
            self._work.clear()
            await self._work.wait()
            words, token = self._wanted, self._token
            if not words or token.is_cancelled or self._conversation is None:
                continue
            try:
                user = UserInput(words, InputKind.SPEECH)
                await self._conversation.speculate(
                    user,
                    can_transfer=self._runner.can_transfer,
                    can_send_digits=self._runner.can_send_digits,
                    cancel=token,
                )
            except Exception:
                log.exception("a speculation failed")
