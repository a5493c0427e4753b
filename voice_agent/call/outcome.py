"""How a call ended."""

from __future__ import annotations

from dataclasses import dataclass

from voice_agent.dialogue.cancellation import CancelReason

OUTCOMES = {
    CancelReason.HANG_UP: "disconnected",
    CancelReason.DISCONNECTED: "disconnected",
    CancelReason.TIMEOUT: "disconnected",
    CancelReason.SHUTDOWN: "completed",
}
"""What a call's end comes to by itself, by what ended it."""
TRANSFERRED = "transferred"


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended.

    Attributes:
        outcome: ``completed`` (by the agent or the service), ``transferred`` (to somebody else),
            ``disconnected`` (by the caller, the connection, or for want of media) or ``failed``.
        reason: More exactly: ``caller_hang_up``, ``connection_lost``, ``media_timeout``, ``max_duration``,
            ``shutdown``, ``internal_error``, the reason the agent hung up with, or the name of the destination.
        seconds: Length of the call.
        turns: Turns that were run.
    """

    outcome: str
    reason: str
    seconds: float
    turns: int
