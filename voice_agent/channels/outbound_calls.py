"""The calls that we place: who may be called, how many at once, and what has become of each.

::

    asked ─▶ dialing ─▶ answered ─▶ ended
                └─▶ failed, with the outcome
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from voice_agent.channels.desk import CallDesk, CallRequest, Place
from voice_agent.channels.limits import TokenBucket
from voice_agent.channels.outbound import DialOutcome, DialResult, OutboundDialer
from voice_agent.channels.tokens import Grant
from voice_agent.config import OutboundOptions
from voice_agent.telemetry.logging import bind
from voice_agent.telemetry.metrics import CALLS_PLACED

log = logging.getLogger(__name__)

MAX_KEPT = 2000
"""Calls about which is told what became of them; the oldest are forgotten."""
DIAL_S = 60.0
"""Limit on a dialer beyond the time that it may ring."""


class OutboundRefused(Exception):
    """No call is placed. ``status`` is that of HTTP."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def allows(prefix: str, to: str) -> bool:
    """Whether a prefix allows an address. One that names a host (``sip:desk@example.com``) means that host alone."""
    if not to.startswith(prefix):
        return False
    return "@" not in prefix or prefix.endswith("@") or to[len(prefix) :][:1] in ("", ":", ";")


@runtime_checkable
class TellsWhoAnswered(Protocol):
    """A dialer whose line finds out whether a person or a machine has answered."""

    def answered_by(self, call_id: str) -> str:
        """Return ``human``, ``machine`` or ``unknown``; "" until it is known."""
        ...


@dataclass(eq=False)
class PlacedCall:
    """A call that was asked for. Holds no number."""

    via: str
    grant: Grant = field(repr=False)
    result: DialResult | None = None

    @property
    def state(self) -> str:
        if self.result is None:
            return "dialing"
        if self.result.outcome is not DialOutcome.ANSWERED:
            return "failed"
        return "ended" if self.grant.is_over else "answered"


class OutboundCalls:
    """Attributes:
    dialers: The channels that can place calls, by name.
    """

    def __init__(self, desk: CallDesk, options: OutboundOptions, dialers: Mapping[str, OutboundDialer]) -> None:
        self._desk, self._options, self.dialers = desk, options, dict(dialers)
        self._calls: OrderedDict[str, PlacedCall] = OrderedDict()
        self._group: asyncio.TaskGroup | None = None
        self._dialing = 0
        self._rate: TokenBucket | None = None

    async def run(self) -> None:
        """Place calls until cancelled; those that ring then are taken back."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    def place(self, to: str, via: str, conversation_id: str, metadata: Mapping[str, Any]) -> str:
        """Begin to call somebody; return the id of the call. It has its place on the line before it rings.

        Raises:
            OutboundRefused: It is off, not allowed, or too much.
            InvitationRefused: The metadata cannot be used.
            CallRefused: The service has no place for the call.
        """
        if not self._options.allowed_prefixes:
            raise OutboundRefused(
                403, "outbound_off", "Calls are placed only once channels.outbound.allowed_prefixes says to whom."
            )
        dialer = self.dialers.get(via)
        if dialer is None:
            known = ", ".join(sorted(self.dialers)) or "none"
            raise OutboundRefused(422, "bad_via", f'"via" must be a channel that can place calls; there are: {known}.')
        if not any(allows(prefix, to) for prefix in self._options.allowed_prefixes):
            raise OutboundRefused(403, "not_allowed", "channels.outbound.allowed_prefixes does not allow this number.")
        if self._group is None:
            raise OutboundRefused(503, "not_ready", "The service is starting or ending.")
        if self._dialing >= self._options.max_dialing or not self._may_dial():
            raise OutboundRefused(429, "too_many_calls", "Too many calls are being placed. Ask again in a moment.")
        ring_s = self._options.ring_timeout_s
        place = self._desk.reserve(conversation_id, via)
        try:
            grant = self._desk.invite(conversation_id, metadata, ring_s + DIAL_S).grant
        except BaseException:
            place.give_back()
            raise
        placed = PlacedCall(via, grant)
        self._calls[grant.call_id] = placed
        if len(self._calls) > MAX_KEPT:
            self._calls.popitem(last=False)
        self._dialing += 1
        request = CallRequest(conversation_id, via, grant=grant, place=place)
        self._group.create_task(self._dial(dialer, to, request, placed), name="outbound.dial")
        return grant.call_id

    def describe(self, call_id: str) -> dict[str, Any] | None:
        """Return what has become of a call, or None for one that is not known."""
        placed = self._calls.get(call_id)
        if placed is None:
            return None
        told: dict[str, Any] = {
            "call_id": call_id,
            "conversation": placed.grant.conversation_id,
            "via": placed.via,
            "state": placed.state,
        }
        if placed.result is not None:
            told["outcome"] = placed.result.outcome.value
            told["detail"] = placed.result.detail
        dialer: object = self.dialers.get(placed.via)
        if isinstance(dialer, TellsWhoAnswered) and (who := dialer.answered_by(call_id)):
            told["answered_by"] = who
        return told

    def _may_dial(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._rate is None:
            burst = max(1.0, min(self._options.per_minute, self._options.max_dialing))
            self._rate = TokenBucket(burst, self._options.per_minute / 60, now)
        return self._rate.take(1, now)

    async def _dial(self, dialer: OutboundDialer, to: str, request: CallRequest, placed: PlacedCall) -> None:
        ring_s = self._options.ring_timeout_s
        result = DialResult(DialOutcome.TRUNK_ERROR)
        with bind(call=placed.grant.call_id, conversation=request.conversation_id):
            try:
                async with asyncio.timeout(ring_s + DIAL_S):
                    dialled = dialer.dial(to, request, ring_timeout_s=ring_s)
                    result = await (_while_wanted(dialled, request.place) if request.place else dialled)
            except TimeoutError:
                log.warning("the dialer did not come to an end")
            except Exception:
                log.exception("a call could not be placed")
            finally:
                self._dialing -= 1
                # A connection that came for it keeps it to its end.
                if request.place is not None:
                    request.place.give_back()
                placed.result = result
                CALLS_PLACED.labels(channel=placed.via, outcome=result.outcome.value).inc()
                log.info("call placed", extra={"channel": placed.via, "result": result.outcome.value})


async def _while_wanted(dialled: Coroutine[Any, Any, DialResult], place: Place) -> DialResult:
    """Return what comes of a call; one that is not to be answered any more is taken back."""
    async with asyncio.TaskGroup() as group:
        calling = group.create_task(dialled, name="outbound.ring")
        unwanted = group.create_task(place.unwanted.wait(), name="outbound.unwanted")
        await asyncio.wait({calling, unwanted}, return_when=asyncio.FIRST_COMPLETED)
        unwanted.cancel()
        calling.cancel()
    return DialResult(DialOutcome.NOT_READY, "not wanted any more") if calling.cancelled() else calling.result()
