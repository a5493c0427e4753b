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


SUPERSEDED = "superseded"
"""Reason of a call whose caller has come by another connection."""
DROPPED = ("connection_lost", "media_timeout", SUPERSEDED)
"""Reasons of calls that the caller did not end."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended.

    Attributes:
        outcome: ``completed`` (by the agent or the service), ``transferred`` (to somebody else),
            ``disconnected`` (by the caller, the connection, or for want of media) or ``failed``.
        reason: More exactly: ``caller_hang_up``, ``connection_lost``, ``media_timeout``, ``superseded``,
            ``max_duration``, ``shutdown``, ``internal_error``, the reason the agent hung up with, or the name of the
            destination.
        seconds: Length of the call.
        turns: Turns that were run.
    """

    outcome: str
    reason: str
    seconds: float
    turns: int


def closing(outcome: str, reason: str) -> str:
    """Return what the conversation is told of a call's end: whether its caller may come back to where they were."""
    if reason in DROPPED:
        return "dropped"
    return reason if reason == CancelReason.SHUTDOWN.value else outcome
