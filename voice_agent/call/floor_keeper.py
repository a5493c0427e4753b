"""Raises events on the floor, carries out what follows, and knows what the turn that runs allows the caller."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.call.ears import Ears
from voice_agent.call.floor import Command, Event, Floor, State
from voice_agent.call.mouth import Mouth
from voice_agent.call.status import Status
from voice_agent.call.timeline import Times
from voice_agent.call.turn import Turn
from voice_agent.call.turns import TurnRunner
from voice_agent.call.utterance import Utterance
from voice_agent.call.vocabulary import ENGLISH, Vocabulary
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import Conversation
from voice_agent.telemetry.metrics import BARGE_INS

log = logging.getLogger(__name__)

UNDECIDED = (State.HELD, State.PAUSED)
"""A voice over the agent waits for a decision."""


class FloorKeeper:
    """The floor of one call (the `FloorHolder` of its turns)."""

    def __init__(
        self,
        floor: Floor,
        runner: TurnRunner,
        conversation: Conversation,
        options: TurnTaking,
        times: Times,
        status: Status,
        vocabulary: Vocabulary = ENGLISH,
    ) -> None:
        self._floor, self._runner, self._conversation = floor, runner, conversation
        self._options, self._times, self._status = options, times, status
        self._vocabulary = vocabulary
        self._ears: Ears
        self._mouth: Mouth
        self._reason = CancelReason.BARGE_IN
        self._moved = asyncio.Event()

    def attach(self, ears: Ears, mouth: Mouth) -> None:
        """Close the ring: ears and mouth know the floor, and the floor them."""
        self._ears, self._mouth = ears, mouth

    @property
    def state(self) -> State:
        return self._floor.state

    def on(self, event: Event) -> None:
        """Raise an event on the floor and carry out what follows."""
        commands = self._floor.on(event)
        self._status.moved(self._floor.state)
        for command in commands:
            self._carry_out(command)
        self._moved.set()
        if event is Event.TURN_ENDED and self._floor.state is State.LISTENING and self._ears.open is not None:
            self.on(Event.CALLER_VOICE)

    async def settled(self) -> None:
        """Wait until no voice over the agent waits for a decision."""
        while self._floor.state in UNDECIDED:
            self._moved.clear()
            await self._moved.wait()

    def audio_started(self, turn: Turn) -> None:
        """The first frame of a turn's reply was released."""
        turn.timeline.first_audio = self._times.since()
        self._sounds()

    def aside_started(self, turn: Turn) -> None:
        """The first frame of a filler was released."""
        turn.timeline.filler = self._times.since()
        self._sounds()

    def _sounds(self) -> None:
        if self._floor.state is State.THINKING:
            self.on(Event.AUDIO_STARTED)

    # What the turn that runs allows

    def is_guarded(self) -> bool:
        """Whether only words interrupt: at the start of the call echo cancellers have not converged."""
        turn = self._runner.current
        if turn is None or not turn.first:
            return False
        heard_s = turn.ledger.position(self._times.now()) / SAMPLE_RATE
        return heard_s < self._options.greeting_guard_s

    def is_interruptible(self) -> bool:
        """Whether there is a turn, and nothing in it that must be heard whole."""
        turn = self._runner.current
        if turn is None:
            return False
        if turn.entry.hang_up is not None or (turn.hang_up is not None and not self._options.interruptible_goodbye):
            return False
        return not self._mouth.protects()

    def may_be_taken_by(self, text: str) -> bool:
        """Whether these words may stop what is audible."""
        if not self.is_interruptible():
            return False
        return self._options.barge_in or (self._options.stop_words_always and self._vocabulary.has_stop(text))

    def may_be_replaced_by(self, text: str) -> bool:
        """Whether these words may end a turn because nothing of its reply was heard yet."""
        turn = self._runner.current
        if turn is None or turn.timeline.first_audio is not None:
            return False
        # A filler is audible, and where the agent hears itself, its words come back.
        return self.is_interruptible() if turn.timeline.filler is None else self.may_be_taken_by(text)

    def discards(self) -> bool:
        """Whether what the caller says now is not listened to."""
        return self._mouth.discards()

    def remaining_s(self) -> float:
        """Return how much of the reply is still to be heard; infinite while the dialogue may say more."""
        return self._mouth.remaining_s()

    # What becomes of it

    def take(self, utterance: Utterance | None = None, reason: CancelReason = CancelReason.BARGE_IN) -> None:
        """The caller takes the floor from the running turn, if there is one; ``utterance``: with these words."""
        turn = self._runner.current
        if turn is None:
            return
        if utterance is not None:
            turn.timeline.voice_over(self._times.since(utterance.onset))
            utterance.took_floor = True
        if self._floor.state is not State.YIELDING:
            self.decided("confirmed")
        self._reason = reason
        self.on(Event.CONFIRMED)

    def interrupt(self) -> None:
        """The caller takes the floor by other means than voice, where the running turn allows it."""
        turn = self._runner.current
        if turn is not None and not turn.token.is_cancelled and self.is_interruptible():
            self.take()

    def decided(self, outcome: str) -> None:
        """Note what became of a voice over the agent."""
        turn = self._runner.current
        if turn is not None:
            turn.timeline.decided(self._times.since(), outcome)
        BARGE_INS.labels(outcome=outcome).inc()

    def backchannel(self, text: str) -> None:
        """The caller agreed, and the agent goes on."""
        self.decided("backchannel")
        self.note("backchannel", text=text)

    def discard(self) -> None:
        """The caller's words fell within wording over which nobody is listened to."""
        self.decided("discarded")
        self.note("utterance_discarded")

    def note(self, kind: str, **data: Any) -> None:
        """Record something that happened beside the turns."""
        try:
            self._conversation.note(kind, **data)
        except Exception:
            log.exception("a note could not be recorded")

    def _carry_out(self, command: Command) -> None:
        match command:
            case Command.HOLD:
                self._mouth.hold()
            case Command.PAUSE:
                self._mouth.pause()
            case Command.RELEASE | Command.RESUME:
                self._mouth.resume()
                self._runner.quiet()
            case Command.YIELD:
                self._runner.cancel(self._reason)
