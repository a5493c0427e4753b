"""Judges the caller's voice and words while a turn runs: do they want the floor, and is it theirs?

What follows from it is carried out by the floor (`floor_keeper`), and words that want a turn go on to the `intake`.
"""

from __future__ import annotations

import logging

from voice_agent.call.backchannel import Backchannels
from voice_agent.call.barge_in import WEIGHTY, Decision, Words
from voice_agent.call.ears import Ears
from voice_agent.call.floor import Event, State
from voice_agent.call.floor_keeper import UNDECIDED, FloorKeeper
from voice_agent.call.intake import Intake
from voice_agent.call.listener import Lost
from voice_agent.call.own_voice import OwnVoice
from voice_agent.call.speculator import Speculator
from voice_agent.call.timeline import Times
from voice_agent.call.turn import Entry
from voice_agent.call.turns import TurnRunner
from voice_agent.call.utterance import Utterance
from voice_agent.call.vocabulary import Vocabulary
from voice_agent.call.wire import TranscriptMessage, Wire
from voice_agent.config import TurnTaking

log = logging.getLogger(__name__)

COULD_NOT_HEAR = "utter_could_not_hear"


class Arbiter:
    """Decides for one call (the `Listener` of its ears)."""

    def __init__(
        self,
        floor: FloorKeeper,
        intake: Intake,
        runner: TurnRunner,
        wire: Wire,
        options: TurnTaking,
        times: Times,
        speculator: Speculator,
        own_voice: OwnVoice,
        vocabulary: Vocabulary,
    ) -> None:
        self._speculator = speculator
        self._floor, self._intake, self._runner = floor, intake, runner
        self._wire, self._options, self._times = wire, options, times
        self._backchannels = Backchannels(options.min_words, vocabulary)
        self._own_voice, self._vocabulary = own_voice, vocabulary
        self._ears: Ears

    def attach(self, ears: Ears) -> None:
        """Close the ring: the ears know the arbiter, and the arbiter them."""
        self._ears = ears

    def speaks_over_agent(self) -> bool:
        return self._runner.current is not None and self._floor.state is not State.YIELDING

    def caller_voice(self, utterance: Utterance) -> None:
        self._speculator.spoiled()
        state = self._floor.state
        # Whoever speaks on after such wording is listened to from the beginning.
        utterance.discarded = self._floor.discards()
        if state is State.LISTENING:
            self._floor.on(Event.CALLER_VOICE)
        elif state is State.THINKING:
            if not self._floor.is_guarded():
                self._floor.on(Event.CALLER_VOICE)
        elif state is State.SPEAKING or state is State.LEAVING:
            self._voice_over_agent(utterance)
        elif state is State.HELD:
            if utterance.over_agent:
                self._ears.want_partial(utterance)
        elif state is State.PAUSED:
            self._ears.want_partial(utterance)
            pending = self._ears.words_pending(utterance)
            if utterance.barge_in.on_voice(utterance.voice_ms, words_pending=pending) is Decision.CONFIRM:
                self._intake.take_back(self._runner.current, utterance)

    def caller_silence(self, utterance: Utterance) -> None:
        if self._floor.state not in UNDECIDED:
            return
        pending = utterance.text is None and self._ears.words_pending(utterance)
        if utterance.barge_in.on_silence(utterance.silence_ms, words_pending=pending) is not Decision.RESUME:
            return
        if not utterance.over_agent:
            return
        if utterance.text is None and pending:
            # The words are late: go on speaking, they are weighed when they come.
            self._floor.decided("late")
            self._floor.on(Event.CALLER_DONE)
        elif utterance.text:
            # Words of weight before any audio get their whole endpoint: they may go on.
            if self._floor.state is State.PAUSED or self._agrees(utterance.text):
                self._ears.drop(utterance)
                self.caller_finished(utterance, utterance.text)
        elif utterance.text == "" or utterance.voice_ms < self._options.min_utterance_voice_ms:
            self._ears.drop(utterance)
            self.caller_lost(utterance, Lost.NO_WORDS)

    def caller_words(self, utterance: Utterance, text: str) -> None:
        if utterance.discarded:
            return
        if self._own_voice.said(text, utterance.onset):
            self._ears.drop(utterance)
            self._own_words(utterance)
            return
        self._wire.send(TranscriptMessage("user", text, final=False))
        if utterance.text == text:
            self._speculator.stable(utterance, text)
        state, turn = self._floor.state, self._runner.current
        if turn is not None and turn.checks_in and self._floor.may_be_taken_by(text) and self._is_answer(utterance):
            self._floor.take(utterance)
        elif state is State.HELD:
            asks = turn is not None and utterance.over_agent and self._floor.is_interruptible()
            if asks and self._judge(utterance, text) is Decision.CONFIRM:
                self._intake.take_back(turn, utterance)
        elif state in (State.SPEAKING, State.PAUSED, State.LEAVING) and self._floor.may_be_taken_by(text):
            decision = self._judge(utterance, text)
            if decision is Decision.CONFIRM:
                self._intake.take_back(self._runner.current, utterance)
            elif decision is Decision.RESUME and state is State.PAUSED and utterance.over_agent:
                self._let_go_on(text, utterance)

    def caller_finished(self, utterance: Utterance, text: str) -> None:
        if utterance.discarded:
            self._floor.discard()
            self._floor.on(Event.CALLER_DONE)
            return
        if self._own_voice.said(text, utterance.onset):
            self._own_words(utterance)
            return
        self._wire.send(TranscriptMessage("user", text, final=True))
        turn = self._runner.current
        if turn is None or turn.token.is_cancelled or not utterance.over_agent:
            self._intake.admit_over(turn, utterance, text)
            return
        verdict = self._backchannels.judge(text, checks_in=turn.checks_in, remaining_s=self._floor.remaining_s())
        if verdict is Words.BACKCHANNEL or verdict is Words.NONE:
            self._floor.backchannel(text)
            self._floor.on(Event.CALLER_DONE)
        elif self._floor.may_be_replaced_by(text):
            self._intake.admit_over(turn, utterance, text)
        elif verdict is Words.INTERRUPTION and self._floor.may_be_taken_by(text):
            self._intake.take_back(self._runner.current, utterance)
            self._intake.admit(utterance, text)
        else:
            # Kept and answered after the reply, which goes on.
            self._floor.decided("kept")
            self._floor.on(Event.CALLER_DONE)
            self._intake.admit(utterance, text, over=turn)

    def caller_lost(self, utterance: Utterance, why: Lost) -> None:
        state = self._floor.state
        unanswered = utterance.took_floor or (self._runner.current is None and why is Lost.FAILED)
        if why is Lost.FAILED or unanswered:
            log.info("an utterance of %d ms was not understood: %s", utterance.voice_ms, why.value)
        if why is Lost.FAILED:
            self._floor.note("utterance_lost")
        if utterance.agreed:
            self._floor.backchannel(utterance.agreed)
        elif state in UNDECIDED:
            self._floor.decided("no_words")
        if state is not State.CLOSED:
            self._floor.on(Event.CALLER_DONE)
        if utterance.before:
            self._intake.admit(utterance, "")
        elif unanswered and not self._runner.inbox:
            self._runner.inbox.add(Entry(line=COULD_NOT_HEAR))

    # Decisions

    def _own_words(self, utterance: Utterance) -> None:
        """The agent has heard itself: it goes on, and nothing is answered."""
        if self._floor.state in UNDECIDED:
            self._floor.decided("own_words")
        self._floor.on(Event.CALLER_DONE)
        if utterance.before:
            self._intake.admit(utterance, "")

    def _voice_over_agent(self, utterance: Utterance) -> None:
        if not self._floor.is_interruptible():
            return
        if self._floor.is_guarded() or not self._options.barge_in:
            if self._options.barge_in or self._options.stop_words_always:
                self._ears.want_partial(utterance)
            return
        if utterance.agreed:
            # It went on after "yeah": what else is said may have weight.
            self._ears.want_partial(utterance)
        decision = utterance.barge_in.on_voice(utterance.voice_ms, words_pending=True)
        if decision is not Decision.WAIT and utterance.over_agent:
            turn = self._runner.current
            if turn is not None:
                turn.timeline.voice_over(self._times.since(utterance.onset), self._times.since())
            self._floor.on(Event.CALLER_VOICE)

    def _let_go_on(self, text: str, utterance: Utterance) -> None:
        """Only a backchannel so far: the agent goes on at once, unless it was about to end anyway."""
        if self._backchannels.is_answer(self._floor.remaining_s()):
            return
        utterance.agreed = text
        turn = self._runner.current
        if turn is not None:
            turn.timeline.decided(self._times.since(), "backchannel")
        self._floor.on(Event.CALLER_DONE)

    def _judge(self, utterance: Utterance, text: str) -> Decision:
        return utterance.barge_in.on_words(text, utterance.heard_ms, certainty=utterance.certainty)

    def _agrees(self, text: str) -> bool:
        turn = self._runner.current
        checks_in = turn is not None and turn.checks_in
        return self._backchannels.judge(text, checks_in=checks_in) is Words.BACKCHANNEL

    @staticmethod
    def _is_answer(utterance: Utterance) -> bool:
        """Whether words over a check-in are certain enough to be one; a cough may be taken for words."""
        return utterance.over_agent and utterance.certainty >= WEIGHTY
