"""What happened when in one turn, in seconds since the call began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

MAX_PAUSES = 50
"""Voices over one reply that are kept."""


@dataclass(frozen=True, slots=True)
class Times:
    """The call's clock: ``now`` is the event loop's time, ``began`` its value when the call began."""

    now: Callable[[], float]
    began: float

    def since(self, instant: float | None = None) -> float:
        """Return an instant of the loop's clock (now by default) in seconds since the call began."""
        return (self.now() if instant is None else instant) - self.began


@dataclass(slots=True)
class Pause:
    """One voice over a reply.

    Attributes:
        onset: Its first voice.
        pause: Playout stopped for it; None where it did not.
        decision: It was decided what it is; playout went on then, or ended.
        outcome: What it was taken for: ``confirmed``, ``backchannel``, ``no_words``, ``kept`` or ``late``.
    """

    onset: float | None = None
    pause: float | None = None
    decision: float | None = None
    outcome: str = ""


@dataclass(slots=True)
class Timeline:
    """Instants of one turn; None is "did not happen".

    Attributes:
        speech_start: The caller's first voice of the utterance.
        speech_end: The caller's last voice before the turn.
        endpoint: The utterance was taken as finished.
        stt_final: Its transcript was there (often before ``endpoint``).
        model_request: The first model call was sent.
        first_token: Its first token came.
        first_text: The first text of the reply came, whoever worded it.
        first_sentence: The first piece of it went to the voice.
        filler: First frame of the filler released.
        first_audio: First frame of the reply released.
        last_audio: Last agent frame played out.
        barge_in_onset: The caller's first voice over the reply.
        pause: Playout stopped for it.
        decision: It was decided: an interruption, or not.
        cancel: The turn was cancelled.
        teardown: The turn and everything it started had ended.
        pauses: Every voice over the reply; the three instants of a barge-in above are those of the last.
    """

    speech_start: float | None = None
    speech_end: float | None = None
    endpoint: float | None = None
    stt_final: float | None = None
    model_request: float | None = None
    first_token: float | None = None
    first_text: float | None = None
    first_sentence: float | None = None
    filler: float | None = None
    first_audio: float | None = None
    last_audio: float | None = None
    barge_in_onset: float | None = None
    pause: float | None = None
    decision: float | None = None
    cancel: float | None = None
    teardown: float | None = None
    pauses: list[Pause] = field(default_factory=list)

    def voice_over(self, onset: float, pause: float | None = None) -> None:
        """A voice came over the reply; ``pause``: playout stopped for it."""
        self.barge_in_onset = onset
        if pause is not None:
            self.pause = pause
        last = self.pauses[-1] if self.pauses else None
        if last is not None and last.onset == onset:
            last.pause = pause if last.pause is None else last.pause
        elif len(self.pauses) < MAX_PAUSES:
            self.pauses.append(Pause(onset, pause))

    def decided(self, instant: float, outcome: str) -> None:
        """It was decided what the last voice is. The first decision about it stands, unless it was an interruption."""
        self.decision = instant
        if self.pauses and (not self.pauses[-1].outcome or outcome == "confirmed"):
            self.pauses[-1].decision, self.pauses[-1].outcome = instant, outcome

    def as_mapping(self) -> dict[str, float | None]:
        """Return the instants by name, rounded to a tenth of a millisecond."""
        return {name: _rounded(getattr(self, name)) for name in _INSTANTS}

    def as_record(self) -> dict[str, Any]:
        """Return what happened, by name, fit for the tracker: what did not happen is left out."""
        found: dict[str, Any] = {name: value for name, value in self.as_mapping().items() if value is not None}
        if self.pauses:
            found["pauses"] = [{key: _rounded(getattr(each, key)) for key in _OF_PAUSE} for each in self.pauses]
        return found


_INSTANTS = tuple(each.name for each in fields(Timeline) if each.name != "pauses")
_OF_PAUSE = tuple(each.name for each in fields(Pause))


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
