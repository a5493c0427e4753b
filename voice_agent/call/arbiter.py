"""Gives and takes the floor: what the caller's voice, words and keys mean for the turn that runs.

Feeds the floor machine with events, carries out its commands, and admits the caller's words as turns.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.call.barge_in import Decision, Words, weigh
from voice_agent.call.ears import Ears, Lost
from voice_agent.call.floor import Command, Event, Floor, State
from voice_agent.call.mouth import Mouth
from voice_agent.call.timeline import Timeline, Times
from voice_agent.call.turn import Entry, Turn
from voice_agent.call.turns import TurnRunner
from voice_agent.call.utterance import Utterance
from voice_agent.call.vocabulary import ENGLISH
from voice_agent.call.wire import TranscriptMessage, Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import Conversation, InputKind, UserInput
from voice_agent.telemetry.metrics import BARGE_INS

log = logging.getLogger(__name__)

COULD_NOT_HEAR = "utter_could_not_hear"
NEARLY_OVER_S = 0.7
"""A backchannel this close to the end of a reply answers it."""
_UNDECIDED = (State.HELD, State.PAUSED)


class Arbiter:
    """Decides for one call (a `Listener` of its ears, the `FloorHolder` of its turns)."""

    def __init__(
        self,
        floor: Floor,
        runner: TurnRunner,
        conversation: Conversation,
        wire: Wire,
        options: TurnTaking,
        times: Times,
    ) -> None:
        self._floor, self._runner, self._conversation = floor, runner, conversation
        self._wire, self._options, self._times = wire, options, times
        self._ears: Ears
        self._mouth: Mouth
        self._reason = CancelReason.BARGE_IN
        self._moved = asyncio.Event()

    def attach(self, ears: Ears, mouth: Mouth) -> None:
        """Close the ring: ears and mouth know the arbiter, and the arbiter them."""
        self._ears, self._mouth = ears, mouth

    @property
    def state(self) -> State:
        return self._floor.state

    def on(self, event: Event) -> None:
        """Raise an event on the floor and carry out what follows."""
        for command in self._floor.on(event):
            self._carry_out(command)
        self._moved.set()
        if event is Event.TURN_ENDED and self._floor.state is State.LISTENING and self._ears.open is not None:
            self.on(Event.CALLER_VOICE)

    async def settled(self) -> None:
        """Wait until no voice over the agent waits for a decision."""
        while self._floor.state in _UNDECIDED:
            self._moved.clear()
            await self._moved.wait()

    def audio_started(self, turn: Turn) -> None:
        """The first frame of a turn was released."""
        turn.timeline.first_audio = self._times.since()
        if self._floor.state is State.THINKING:
            self.on(Event.AUDIO_STARTED)

    # The caller's voice (Listener)

    def speaks_over_agent(self) -> bool:
        return self._runner.current is not None and self._floor.state is not State.YIELDING

    def caller_voice(self, utterance: Utterance) -> None:
        state = self._floor.state
        if state is State.LISTENING:
            self.on(Event.CALLER_VOICE)
        elif state is State.THINKING:
            if not self._guarded():
                self.on(Event.CALLER_VOICE)
        elif state is State.SPEAKING or state is State.LEAVING:
            self._voice_over_agent(utterance)
        elif state is State.HELD:
            if utterance.over_agent:
                self._ears.want_partial(utterance)
        elif state is State.PAUSED:
            self._ears.want_partial(utterance)
            pending = self._ears.words_pending(utterance)
            if utterance.barge_in.on_voice(utterance.voice_ms, words_pending=pending) is Decision.CONFIRM:
                self._confirm(utterance)

    def caller_silence(self, utterance: Utterance) -> None:
        if self._floor.state not in _UNDECIDED:
            return
        pending = utterance.text is None and self._ears.words_pending(utterance)
        if utterance.barge_in.on_silence(utterance.silence_ms, words_pending=pending) is not Decision.RESUME:
            return
        if not utterance.over_agent:
            return
        if utterance.text is None and pending:
            # The words are late: go on speaking, they are weighed when they come.
            self._decided("late")
            self.on(Event.CALLER_DONE)
        elif utterance.text:
            # Words of weight before any audio get their whole endpoint: they may go on.
            if self._floor.state is State.PAUSED or self._weigh(utterance.text) is Words.BACKCHANNEL:
                self._ears.drop(utterance)
                self.caller_finished(utterance, utterance.text)
        elif utterance.text == "" or utterance.voice_ms < self._options.min_utterance_voice_ms:
            self._ears.drop(utterance)
            self.caller_lost(utterance, Lost.NO_WORDS)

    def caller_words(self, utterance: Utterance, text: str) -> None:
        self._wire.send(TranscriptMessage("user", text, final=False))
        state, turn = self._floor.state, self._runner.current
        if state is State.HELD:
            asks = turn is not None and utterance.over_agent and self._interruptible()
            if asks and self._judge(utterance, text) is Decision.CONFIRM:
                self._take_back(turn, utterance)
        elif state in (State.SPEAKING, State.PAUSED, State.LEAVING) and self._may_take_floor(text):
            decision = self._judge(utterance, text)
            if decision is Decision.CONFIRM:
                self._confirm(utterance)
            elif decision is Decision.RESUME and state is State.PAUSED and utterance.over_agent:
                self._let_go_on(text, utterance)

    def caller_finished(self, utterance: Utterance, text: str) -> None:
        self._wire.send(TranscriptMessage("user", text, final=True))
        turn = self._runner.current
        if turn is None or turn.token.is_cancelled or not utterance.over_agent:
            self._admit_over(turn, utterance, text)
            return
        verdict = self._weigh(text)
        if verdict is Words.BACKCHANNEL and self._mouth.remaining_s() <= NEARLY_OVER_S:
            # "Yes" into the last word of a question is its answer.
            verdict = Words.INTERRUPTION
        if verdict is Words.BACKCHANNEL or verdict is Words.NONE:
            self._backchannel(text)
            self.on(Event.CALLER_DONE)
        elif turn.timeline.first_audio is None and self._interruptible():
            self._admit_over(turn, utterance, text)
        elif verdict is Words.INTERRUPTION and self._may_take_floor(text):
            self._confirm(utterance)
            self._admit(utterance, text)
        else:
            # Kept and answered after the reply, which goes on.
            self._decided("kept")
            self.on(Event.CALLER_DONE)
            self._admit(utterance, text)

    def caller_lost(self, utterance: Utterance, why: Lost) -> None:
        state = self._floor.state
        unanswered = utterance.took_floor or (self._runner.current is None and why is Lost.FAILED)
        if why is Lost.FAILED or unanswered:
            log.info("an utterance of %d ms was not understood: %s", utterance.voice_ms, why.value)
        if utterance.agreed:
            self._backchannel(utterance.agreed)
        elif state in _UNDECIDED:
            self._decided("no_words")
        if state is not State.CLOSED:
            self.on(Event.CALLER_DONE)
        if utterance.before:
            self._admit(utterance, "")
        elif unanswered and not self._runner.inbox:
            self._runner.inbox.add(Entry(line=COULD_NOT_HEAR))

    # Other inputs

    def typed(self, text: str, kind: InputKind) -> None:
        """Typed words or keys: they need no decision."""
        if self._interruptible():
            self.interrupt()
        moment = self._times.since()
        self._runner.inbox.add(Entry(UserInput(text, kind), timeline=Timeline(endpoint=moment)))
        self._wire.send(TranscriptMessage("user", text, final=True))

    def interrupt(self) -> None:
        """The caller takes the floor from the running turn, if there is one and it may be interrupted."""
        turn = self._runner.current
        if turn is not None and not turn.token.is_cancelled and self._interruptible():
            self._confirm()

    # Decisions

    def _voice_over_agent(self, utterance: Utterance) -> None:
        if not self._interruptible():
            return
        if self._guarded() or not self._options.barge_in:
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
                turn.timeline.barge_in_onset = self._times.since(utterance.onset)
                turn.timeline.pause = self._times.since()
            self.on(Event.CALLER_VOICE)

    def _let_go_on(self, text: str, utterance: Utterance) -> None:
        """Only a backchannel so far: the agent goes on at once, unless it was about to end anyway."""
        if self._mouth.remaining_s() <= NEARLY_OVER_S:
            return
        utterance.agreed = text
        turn = self._runner.current
        if turn is not None:
            turn.timeline.decision = self._times.since()
        self.on(Event.CALLER_DONE)

    def _judge(self, utterance: Utterance, text: str) -> Decision:
        return utterance.barge_in.on_words(text, utterance.heard_ms, certainty=utterance.certainty)

    def _backchannel(self, text: str) -> None:
        self._decided("backchannel")
        self._note("backchannel", text=text)

    def _guarded(self) -> bool:
        """Whether only words interrupt: at the start of the call echo cancellers have not converged."""
        turn = self._runner.current
        if turn is None or not turn.first:
            return False
        heard_s = turn.ledger.position(self._times.now()) / SAMPLE_RATE
        return heard_s < self._options.greeting_guard_s

    def _interruptible(self) -> bool:
        turn = self._runner.current
        if turn is None:
            return False
        if turn.hang_up is not None and not self._options.interruptible_goodbye:
            return False
        return not self._mouth.protects()

    def _may_take_floor(self, text: str) -> bool:
        """Whether these words may stop what is audible."""
        if not self._interruptible():
            return False
        return self._options.barge_in or (self._options.stop_words_always and ENGLISH.has_stop(text))

    def _confirm(self, utterance: Utterance | None = None, reason: CancelReason = CancelReason.BARGE_IN) -> None:
        turn = self._runner.current
        if turn is None:
            return
        if utterance is not None and turn.timeline.barge_in_onset is None:
            turn.timeline.barge_in_onset = self._times.since(utterance.onset)
        if utterance is not None:
            utterance.took_floor = True
        if self._floor.state is not State.YIELDING:
            self._decided("confirmed")
        self._reason = reason
        self.on(Event.CONFIRMED)

    def _weigh(self, text: str) -> Words:
        return weigh(text, self._options.min_words)

    def _decided(self, outcome: str) -> None:
        turn = self._runner.current
        if turn is not None:
            turn.timeline.decision = self._times.since()
        BARGE_INS.labels(outcome=outcome).inc()

    def _admit_over(self, turn: Turn | None, utterance: Utterance, text: str) -> None:
        """Admit words that were spoken while nothing of a reply was audible."""
        if turn is not None and not turn.token.is_cancelled:
            self._take_back(turn, utterance)
        self.on(Event.CALLER_DONE)
        self._admit(utterance, text)

    def _take_back(self, turn: Turn | None, utterance: Utterance) -> None:
        """End a turn of which nothing was heard: further words continue its own, or replace them."""
        if turn is None:
            return
        late_s = self._options.late_final_ms / 1000
        user = turn.entry.user
        # Keys and typed words are whole as they are: only speech goes on with speech.
        goes_on = utterance.onset - turn.started <= late_s and turn.timeline.first_audio is None
        if goes_on and user is not None and user.kind is InputKind.SPEECH:
            # One utterance in two parts: never two answers.
            utterance.before = user.text
            self._confirm(utterance, CancelReason.SUPERSEDED)
        else:
            self._confirm(utterance)

    def _admit(self, utterance: Utterance, text: str) -> None:
        text = f"{utterance.before} {text}".strip()
        speech_end = self._times.since() - utterance.silence_ms / 1000
        timeline = Timeline(speech_end, self._times.since(), self._times.since(utterance.text_at))
        self._runner.inbox.add(Entry(UserInput(text, InputKind.SPEECH), timeline=timeline))

    def _note(self, kind: str, **data: Any) -> None:
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
            case Command.YIELD:
                self._runner.cancel(self._reason)
