"""Putting a caller through to somebody else: what is asked of a wire, and what can come of it.

The dialogue names a destination, the call asks the wire, the wire answers with a typed reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class TransferReason(Enum):
    """What came of a transfer."""

    COMPLETED = "completed"
    """The other side has answered, or, where a wire cannot know that, has taken the call over."""
    BUSY = "busy"
    NO_ANSWER = "no_answer"
    DECLINED = "declined"
    UNREACHABLE = "unreachable"
    """There is nobody at that number or address."""
    TRUNK_ERROR = "trunk_error"
    """The line, the provider or the wire failed; another try may do."""
    NOT_SUPPORTED = "not_supported"
    """This wire cannot transfer, or not in this way, or the project has no such destination."""
    TIMEOUT = "timeout"
    """Nothing was heard of it within the destination's time."""


@dataclass(frozen=True, slots=True)
class TransferTarget:
    """Where a caller is to be put through.

    Attributes:
        name: The destination's name in ``integrations.yml``; the only thing of it that is logged or recorded.
        to: A number in international form (``+1…``), or an address (``sip:…``, ``sips:…``).
        warm: Stay on the line until somebody has answered, instead of handing the call over blindly.
        timeout_s: How long the other side may ring, in seconds.
        hold_audio: A WAV file that is heard meanwhile; None for a ringing tone.
    """

    name: str
    to: str = field(repr=False)
    warm: bool = False
    timeout_s: float = 30.0
    hold_audio: str | None = None


@dataclass(frozen=True, slots=True)
class TransferResult:
    """What came of a transfer. ``detail`` is for the operator, such as a status code; nothing of the caller's."""

    reason: TransferReason
    detail: str = ""

    @property
    def completed(self) -> bool:
        return self.reason is TransferReason.COMPLETED


NOT_SUPPORTED = TransferResult(TransferReason.NOT_SUPPORTED)
