"""What becomes of a REFER: its response and NOTIFY messages, read as the outcome of a transfer (RFC 3515). Pure."""

from __future__ import annotations

import re

from voice_agent.channels.sip.message import Request
from voice_agent.transfers import TransferReason, TransferResult

_FRAGMENT = re.compile(rb"\s*SIP/2\.0 ([1-6]\d\d)")
_NOT_SUPPORTED = (405, 420, 421, 489, 501)
_OUTCOMES = {
    486: TransferReason.BUSY,
    600: TransferReason.BUSY,
    408: TransferReason.NO_ANSWER,
    480: TransferReason.NO_ANSWER,
    487: TransferReason.NO_ANSWER,
    603: TransferReason.DECLINED,
    607: TransferReason.DECLINED,
    404: TransferReason.UNREACHABLE,
    410: TransferReason.UNREACHABLE,
    484: TransferReason.UNREACHABLE,
    604: TransferReason.UNREACHABLE,
}


def outcome(status: int) -> TransferResult:
    """Return what a final status of the call to somebody else means."""
    if 200 <= status < 300:
        return TransferResult(TransferReason.COMPLETED, str(status))
    return TransferResult(_OUTCOMES.get(status, TransferReason.TRUNK_ERROR), str(status))


def refused(status: int) -> TransferResult:
    """Return what a refusal of the REFER itself means."""
    if status in _NOT_SUPPORTED:
        return TransferResult(TransferReason.NOT_SUPPORTED, str(status))
    reason = TransferReason.DECLINED if status == 603 else TransferReason.TRUNK_ERROR
    return TransferResult(reason, str(status))


class Referral:
    """One transfer under way.

    Attributes:
        rings: The other side was reached and rings.
        result: How it ended, once it has.
    """

    def __init__(self) -> None:
        self.rings = False
        self.result: TransferResult | None = None

    def notify(self, request: Request) -> bool:
        """Read a NOTIFY. Returns False if it is about something else."""
        if request.headers.get("event").partition(";")[0].strip().lower() != "refer":
            return False
        match = _FRAGMENT.match(request.body)
        status = int(match[1]) if match else 0
        if status in (180, 183):
            self.rings = True
        elif status >= 200:
            self.result = self.result or outcome(status)
        elif request.headers.get("subscription-state").lower().startswith("terminated"):
            # The far end tells no more, without having said how it ended.
            self.result = self.result or TransferResult(TransferReason.TRUNK_ERROR, "no outcome was told")
        return True

    def given_up(self) -> TransferResult:
        """Return what it means that nothing more came in time."""
        return TransferResult(TransferReason.NO_ANSWER if self.rings else TransferReason.TIMEOUT)
