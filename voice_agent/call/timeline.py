"""What happened when in one turn, in seconds since the call began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Times:
    """The call's clock: ``now`` is the event loop's time, ``began`` its value when the call began."""

    now: Callable[[], float]
    began: float

    def since(self, instant: float | None = None) -> float:
        """Return an instant of the loop's clock (now by default) in seconds since the call began."""
        return (self.now() if instant is None else instant) - self.began


@dataclass(slots=True)
class Timeline:
    """Instants of one turn; None is "did not happen".

    Attributes:
        speech_end: The caller's last voice before the turn.
        endpoint: The utterance was taken as finished.
        stt_final: Its transcript was there (often before ``endpoint``).
        model_request: The first model call was sent.
        first_token: Its first token came.
        first_text: The first text of the reply came, whoever worded it.
        filler: First frame of the filler released.
        first_audio: First frame of the reply released.
        last_audio: Last agent frame played out.
        barge_in_onset: The caller's first voice over the reply.
        pause: Playout stopped for it.
        decision: It was decided: an interruption, or not.
        cancel: The turn was cancelled.
        teardown: The turn and everything it started had ended.
    """

    speech_end: float | None = None
    endpoint: float | None = None
    stt_final: float | None = None
    model_request: float | None = None
    first_token: float | None = None
    first_text: float | None = None
    filler: float | None = None
    first_audio: float | None = None
    last_audio: float | None = None
    barge_in_onset: float | None = None
    pause: float | None = None
    decision: float | None = None
    cancel: float | None = None
    teardown: float | None = None

    def as_mapping(self) -> dict[str, float | None]:
        """Return the instants by name, rounded to a tenth of a millisecond."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: None if value is None else round(value, 4) for name, value in values.items()}
