"""Calls that the service places: what is asked of a channel that can, and what can come of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from voice_agent.channels.desk import CallRequest


class DialOutcome(Enum):
    """What came of a call to somebody."""

    ANSWERED = "answered"
    BUSY = "busy"
    NO_ANSWER = "no_answer"
    DECLINED = "declined"
    UNREACHABLE = "unreachable"
    """There is nobody at that number or address."""
    TRUNK_ERROR = "trunk_error"
    """The line, the provider or the exchange failed; another try may do."""
    NOT_READY = "not_ready"
    """The service itself has no place for the call now, or ends."""
    BAD_ADDRESS = "bad_address"
    """The channel cannot call such a number or address."""


@dataclass(frozen=True, slots=True)
class DialResult:
    """What came of it.

    Attributes:
        detail: For the operator, such as a status code; nothing of who was called.
        call_id: Of the call that has begun, where somebody answered.
    """

    outcome: DialOutcome
    detail: str = ""
    call_id: str = ""


class OutboundDialer(Protocol):
    """A channel that can place calls."""

    async def dial(self, to: str, request: CallRequest, *, ring_timeout_s: float = 30.0) -> DialResult:
        """Call somebody; return once they have answered, or it has failed.

        The call has its place before it rings. Once it is answered it goes on by itself, owned by the channel.
        Cancelled while it rings, it is taken back.

        Args:
            to: A number in international form (``+1…``), or an address (``sip:…``).
            request: Whose conversation it is; its ``channel`` and ``connect`` are the dialer's to set.
            ring_timeout_s: How long it may ring.
        """
        ...
