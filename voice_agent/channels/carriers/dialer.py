"""Calls that are placed through a carrier.

::

    dial ─▶ carrier's API ─▶ rings ─▶ answered ─▶ the stream comes ─▶ the call begins, and greets
                               └─▶ busy, no answer …: the carrier's webhook tells
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from voice_agent.channels.carriers.api import ApiFault
from voice_agent.channels.carriers.carrier import Carrier, Placement, Progress
from voice_agent.channels.carriers.pending import PendingCalls, Replayed, TooManyPending
from voice_agent.channels.desk import CallRequest
from voice_agent.channels.outbound import DialOutcome, DialResult

log = logging.getLogger(__name__)

MARGIN_S = 15.0
"""How much longer than it may ring the carrier is waited for: setting up a call, and the stream after the answer."""
MAX_KEPT = 1000
"""Calls about which the carrier's word is kept."""
TAKE_BACK_S = 6.0
"""Limit on that; the API's own lies within."""
T = TypeVar("T")
_NUMBER = re.compile(r"\+[1-9]\d{2,14}")


class CarrierDialer:
    """Implements `voice_agent.channels.outbound.OutboundDialer`."""

    def __init__(
        self, carrier: Carrier, pending: PendingCalls, on_answered_by: Callable[[str, str], None] = lambda id, who: None
    ) -> None:
        """Args: ``on_answered_by``: told of a conversation who has answered its call, once that is known."""
        self._carrier, self._pending, self._on_answered_by = carrier, pending, on_answered_by
        self._conversations: OrderedDict[str, str] = OrderedDict()
        self._ringing: dict[str, asyncio.Future[DialResult]] = {}
        self._told: OrderedDict[str, Progress] = OrderedDict()
        self._calls: OrderedDict[str, str] = OrderedDict()
        self._answered_by: OrderedDict[str, str] = OrderedDict()

    def answered_by(self, call_id: str) -> str:
        """Return who has answered a call of ours (``human``, ``machine``, ``unknown``), or "" until it is told."""
        return self._answered_by.get(self._calls.get(call_id, ""), "")

    async def dial(self, to: str, request: CallRequest, *, ring_timeout_s: float = 30.0) -> DialResult:
        if not self._carrier.can_dial:
            return DialResult(DialOutcome.BAD_ADDRESS, "the channel has no from_number")
        if not _NUMBER.fullmatch(to):
            return DialResult(DialOutcome.BAD_ADDRESS, "carriers call numbers in international form")
        result: asyncio.Future[DialResult] = asyncio.get_running_loop().create_future()
        limit_s = ring_timeout_s + MARGIN_S
        try:
            expected = self._pending.expect(
                "",
                request.conversation_id,
                {"called_number": to},
                grant=request.grant,
                place=request.place,
                expires_in_s=limit_s,
                on_result=lambda told: None if result.done() else result.set_result(told),
            )
        except TooManyPending:
            return DialResult(DialOutcome.NOT_READY)
        call = ""
        try:
            call = await self._carrier.place(Placement(to, expected.token, ring_timeout_s))
            if not call or not self._pending.bind(expected, call):
                return DialResult(DialOutcome.TRUNK_ERROR, "the carrier named another call")
            self._ringing[call] = result
            _keep(self._conversations, call, request.conversation_id)
            if who := self._answered_by.get(call):
                self._on_answered_by(request.conversation_id, who)
            if told := self._told.pop(call, None):
                self.progress(told)
            async with asyncio.timeout(limit_s):
                came = await asyncio.shield(result)
            if call_id := request.grant.call_id if request.grant else came.call_id:
                _keep(self._calls, call_id, call)
            return came
        except ApiFault as fault:
            # Where the stream has come before the carrier's late answer, the call goes on.
            return result.result() if result.done() else DialResult(fault.outcome, str(fault))
        except Replayed:
            return DialResult(DialOutcome.TRUNK_ERROR, "the carrier named a call twice")
        except TimeoutError:
            return DialResult(DialOutcome.NO_ANSWER)
        finally:
            self._pending.withdraw(expected)
            self._ringing.pop(call, None)
            if call and not result.done():
                result.cancel()
                await self._take_back(call)

    def progress(self, progress: Progress) -> None:
        """The carrier tells what has become of a call."""
        if progress.answered_by and self._answered_by.get(progress.call) != progress.answered_by:
            _keep(self._answered_by, progress.call, progress.answered_by)
            if conversation_id := self._conversations.get(progress.call):
                self._on_answered_by(conversation_id, progress.answered_by)
        ringing = self._ringing.get(progress.call)
        if ringing is None:
            if progress.over:
                # Before the answer to our request has told which call it is.
                _keep(self._told, progress.call, progress)
        elif not ringing.done() and progress.over:
            outcome = progress.outcome or DialOutcome.TRUNK_ERROR
            ringing.set_result(DialResult(outcome, "" if progress.outcome else "ended before its stream came"))

    async def _take_back(self, call: str) -> None:
        try:
            async with asyncio.timeout(TAKE_BACK_S):
                await self._carrier.hang_up(call)
        except (ApiFault, TimeoutError) as fault:
            log.warning("a call that rings in vain could not be taken back: %s", fault)


def _keep(names: OrderedDict[str, T], name: str, value: T) -> None:
    names[name] = value
    names.move_to_end(name)
    if len(names) > MAX_KEPT:
        names.popitem(last=False)
