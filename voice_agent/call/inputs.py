"""What a wire feeds into a call, each to the part that it is for."""

from __future__ import annotations

import logging

from voice_agent.call.ears import Ears
from voice_agent.call.ending import Ending
from voice_agent.call.floor_keeper import FloorKeeper
from voice_agent.call.inbox import MAX_CHARACTERS
from voice_agent.call.intake import Intake
from voice_agent.call.keys import KeyBuffer
from voice_agent.call.mouth import Mouth
from voice_agent.call.recorder import Recorder
from voice_agent.call.timeline import Times
from voice_agent.call.turns import TurnRunner
from voice_agent.dialogue.reply import InputKind

log = logging.getLogger(__name__)


class Inputs:
    """Implements `CallInputs` for one call. Once its end is decided nothing is taken in any more.

    Attributes:
        keys: Those pressed that are no entry yet.
        is_muted: The caller has switched their microphone off, or has put the call on hold.
    """

    def __init__(
        self,
        ears: Ears,
        mouth: Mouth,
        floor: FloorKeeper,
        intake: Intake,
        runner: TurnRunner,
        times: Times,
        ending: Ending,
        recorder: Recorder | None,
    ) -> None:
        self._ears, self._mouth, self._floor, self._intake = ears, mouth, floor, intake
        self._runner, self._times, self._ending, self._recorder = runner, times, ending, recorder
        self.keys = KeyBuffer()
        self.is_muted = False
        self._deaf = False
        self._others = 0

    @property
    def count(self) -> int:
        """Signs of life so far: it changes with everything that comes in."""
        return self._ears.frames + self._others

    def hear(self, pcm: bytes) -> None:
        """Caller audio, canonical PCM, any length."""
        if self._ending.is_decided:
            return
        if self.is_muted:
            # What was begun before is finished as if the caller had fallen silent.
            pcm = bytes(len(pcm))
        if self._recorder is not None:
            self._recorder.caller(pcm, self._times.now())
        try:
            self._ears.hear(pcm)
        except Exception:
            # Once per call: a broken detector would say the same fifty times a second.
            if not self._deaf:
                self._deaf = True
                log.exception("caller audio could not be processed")

    def type_text(self, text: str) -> None:
        """A typed utterance; blank ones are ignored, what exceeds the longest input of a turn is cut."""
        self._others += 1
        text = text.strip()[:MAX_CHARACTERS]
        if text and not self._ending.is_decided:
            self._intake.typed(text, InputKind.TEXT)

    def press_key(self, digit: str) -> None:
        """One key. Keys stop the agent like words; they are answered once the entry is complete."""
        self._others += 1
        if self._ending.is_decided:
            return
        entry = self.keys.press(digit, self._times.now())
        if entry is not None:
            self._intake.typed(entry, InputKind.DTMF)
        elif self.keys:
            self._floor.interrupt()

    def mute(self, muted: bool) -> None:
        """The caller has switched their microphone off or on."""
        self._others += 1
        self.is_muted = muted

    def hold(self, held: bool) -> None:
        """On hold the agent keeps silent, and nobody is asked whether they are there."""
        self._others += 1
        self.is_muted = held
        self._mouth.on_hold(held)

    def played(self, ms: float) -> None:
        """The far end has played this much of the current reply."""
        self._others += 1
        turn = self._runner.current
        if turn is not None and not turn.closed:
            turn.ledger.acked(ms, self._times.now())

    def mark_reached(self, name: str) -> None:
        """The far end has come to a mark: of a position in the current reply, or of an end."""
        self._others += 1
        self._mouth.mark_reached(name)
