"""The caller's words, typed lines and keys on their way to a turn: what they end, and what they go on with."""

from __future__ import annotations

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.call.floor import Event
from voice_agent.call.floor_keeper import FloorKeeper
from voice_agent.call.timeline import Timeline, Times
from voice_agent.call.turn import Entry, SpokenOver, Turn
from voice_agent.call.turns import TurnRunner
from voice_agent.call.utterance import Utterance
from voice_agent.call.wire import TranscriptMessage, Wire
from voice_agent.config import TurnTaking
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import InputKind, UserInput


class Intake:
    """Admits what the caller of one call says."""

    def __init__(self, floor: FloorKeeper, runner: TurnRunner, wire: Wire, options: TurnTaking, times: Times) -> None:
        self._floor, self._runner, self._wire = floor, runner, wire
        self._options, self._times = options, times

    def typed(self, text: str, kind: InputKind) -> None:
        """Typed words or keys: they need no decision."""
        self._floor.interrupt()
        moment = self._times.since()
        self._runner.inbox.add(Entry(UserInput(text, kind), timeline=Timeline(endpoint=moment)))
        self._wire.send(TranscriptMessage("user", text, final=True))

    def admit(self, utterance: Utterance, text: str, *, over: Turn | None = None) -> None:
        """These words want a turn.

        Args:
            over: The turn whose reply they were spoken over and which goes on.
        """
        text = f"{utterance.before} {text}".strip()
        now = self._times.since()
        timeline = Timeline(
            speech_start=self._times.since(utterance.onset),
            speech_end=now - utterance.silence_ms / 1000,
            endpoint=now,
            stt_final=self._times.since(utterance.text_at),
        )
        endpoint = utterance.endpoint
        self._runner.inbox.add(
            Entry(
                UserInput(text, InputKind.SPEECH),
                timeline=timeline,
                may_go_on=endpoint.reply_ms > endpoint.turn_ms,
                reply_from=self._times.now() + (endpoint.reply_ms - utterance.silence_ms) / 1000,
                over=self._place(utterance, over),
            )
        )

    def _place(self, utterance: Utterance, turn: Turn | None) -> SpokenOver | None:
        if turn is None:
            return None
        now = self._times.now()
        return SpokenOver(turn.ledger, turn.ledger.position(now) - round((now - utterance.onset) * SAMPLE_RATE))

    def admit_over(self, turn: Turn | None, utterance: Utterance, text: str) -> None:
        """Admit words that were spoken while nothing of a reply was audible."""
        stays_ended = turn is not None and turn.entry.hang_up is not None
        if turn is not None and not turn.token.is_cancelled and not stays_ended:
            self.take_back(turn, utterance)
        self._floor.on(Event.CALLER_DONE)
        if not stays_ended:
            self.admit(utterance, text)

    def take_back(self, turn: Turn | None, utterance: Utterance) -> None:
        """End a turn: words that follow at once and go on with its own are joined to them, others replace them."""
        if turn is None:
            return
        user = turn.entry.user
        # Keys and typed words are whole as they are: only speech goes on with speech.
        if user is not None and user.kind is InputKind.SPEECH and self._goes_on(turn, utterance):
            # One utterance in two parts: never two answers.
            utterance.before = user.text
            self._floor.take(utterance, CancelReason.SUPERSEDED)
        else:
            self._floor.take(utterance)

    def _goes_on(self, turn: Turn, utterance: Utterance) -> bool:
        if utterance.onset - turn.started > self._options.late_final_ms / 1000:
            return False
        if turn.timeline.first_audio is None:
            return True
        # The second half of a sentence met the first sound of an answer: nobody has heard a word of that.
        return turn.entry.may_go_on and not turn.ledger.heard(self._times.now()).heard.strip()
