"""One dialog of ours: what goes on between its beginning and its end.

::

    offered ──▶ accepted ──▶ standing ──▶ over        the far end has called
       └──────────┴─────────────┴───────▶ over        cancelled, never acknowledged, hung up by either side
    calling ─────────────────▶ standing ──▶ over      we have called
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Callable
from enum import Enum
from typing import Any

from voice_agent.channels.limits import TokenBucket
from voice_agent.channels.sip import sdp
from voice_agent.channels.sip.addresses import BadSip
from voice_agent.channels.sip.agent import Credentials, UserAgent
from voice_agent.channels.sip.dialog import Dialog
from voice_agent.channels.sip.goodbye import broke_off
from voice_agent.channels.sip.message import Request, Response
from voice_agent.channels.sip.referral import Referral, refused
from voice_agent.channels.sip.transactions import Address, Transaction
from voice_agent.channels.sip.wire import SipWire
from voice_agent.digits import KEYS
from voice_agent.transfers import TransferReason, TransferResult, TransferTarget

log = logging.getLogger(__name__)

BYE_S = 0.5
"""How long our hang-up waits to be confirmed; it is repeated for longer, while nobody waits."""
REQUESTS = (40.0, 10.0)
"""Requests of one far end within its call, at once and per second: each is remembered for half a minute."""
ALLOW = ("allow", "INVITE, ACK, BYE, CANCEL, OPTIONS, NOTIFY, INFO")
SDP_TYPE = ("content-type", "application/sdp")
_RELAYED_KEY = re.compile(rb"\s*signal\s*=\s*([0-9A-Da-d*#])\s", re.IGNORECASE)


class Phase(Enum):
    OFFERED = "offered"
    ACCEPTED = "accepted"
    CALLING = "calling"
    STANDING = "standing"
    OVER = "over"


PHASES = {
    Phase.OFFERED: (Phase.ACCEPTED, Phase.OVER),
    Phase.ACCEPTED: (Phase.STANDING, Phase.OVER),
    Phase.CALLING: (Phase.STANDING, Phase.OVER),
    Phase.STANDING: (Phase.OVER,),
    Phase.OVER: (),
}
"""Which phase may follow which."""


class Leg:
    """Implements `voice_agent.channels.sip.wire.Signalling`.

    Args:
        codecs: Those that we speak, best first.
        credentials: Who we are, where the far end asks.
        on_over: Called once when the dialog is over.

    Attributes:
        peer: Where our requests go.
        standing: Set once the far end has acknowledged, or has answered our call.
        over: Set at the end.
    """

    def __init__(
        self,
        agent: UserAgent,
        wire: SipWire,
        codecs: tuple[str, ...],
        phase: Phase,
        *,
        credentials: Credentials | None = None,
        on_over: Callable[[Leg], None] = lambda leg: None,
    ) -> None:
        self._agent, self._wire, self.codecs = agent, wire, codecs
        self._credentials, self._on_over = credentials, on_over
        self._phase = phase
        self.dialog: Dialog | None = None
        self.peer: Address = ("", 0)
        self.standing, self.over = asyncio.Event(), asyncio.Event()
        self._agreed: sdp.Agreed | None = None
        self._session = (secrets.randbits(31), 1)
        self._media_port = 0
        self._unacknowledged: dict[int, tuple[Transaction, bool]] = {}
        self._requests = TokenBucket(*REQUESTS, asyncio.get_running_loop().time())
        self._referral: Referral | None = None
        self._told = asyncio.Event()
        wire.signalling = self

    @property
    def phase(self) -> Phase:
        return self._phase

    def enter(self, phase: Phase) -> bool:
        """Go on to a phase. Returns False, and changes nothing, if it cannot follow."""
        if phase not in PHASES[self._phase]:
            return False
        self._phase = phase
        if phase is Phase.STANDING:
            self.standing.set()
        if phase is Phase.OVER:
            self.over.set()
            self._told.set()
            self._on_over(self)
        return True

    # Media

    def agree(self, agreed: sdp.Agreed) -> None:
        """Speak what is agreed."""
        self._agreed = agreed
        self._wire.agree(agreed, frozenset({self.peer[0]}))

    def answer(self, agreed: sdp.Agreed) -> bytes:
        return sdp.answer(agreed, self._agent.address(self.peer), self._media_port, self._session)

    def offer(self) -> bytes:
        codecs = self.codecs if self._agreed is None else (self._agreed.codec.name,)
        return sdp.offer(codecs, self._agent.address(self.peer), self._media_port, self._session)

    async def open_media(self) -> None:
        """Raises: NoPort."""
        self._media_port = await self._wire.open()

    # What the far end asks in the dialog

    def receive(self, request: Request, transaction: Transaction | None) -> None:
        """Take a request of this dialog."""
        if transaction is None:
            self._acknowledged(request)
            return
        assert self.dialog is not None
        if request.method != "BYE" and not self._requests.take(1, asyncio.get_running_loop().time()):
            self._agent.refuse(transaction, 503)
            return
        if not self.dialog.follows(request):
            self._agent.respond(transaction, 500)
            return
        match request.method:
            case "BYE":
                self._agent.respond(transaction, 200)
                self._ended_by_caller(request)
            case "INVITE":
                self._changed(request, transaction)
            case "NOTIFY":
                known = self._referral is not None and self._referral.notify(request)
                self._agent.respond(transaction, 200 if known else 489)
                self._told.set()
            case "INFO":
                if match := _RELAYED_KEY.match(request.body + b"\n"):
                    key = match[1].decode().upper()
                    if key in KEYS:
                        self._wire.press_key(key)
                self._agent.respond(transaction, 200)
            case "OPTIONS":
                self._agent.respond(transaction, 200, ALLOW)
            case _:
                self._agent.respond(transaction, 405, ALLOW)

    def _ended_by_caller(self, request: Request) -> None:
        if self._referral is not None and self._referral.result is None:
            # Whoever was referred and hangs up has somebody else on the line.
            self._referral.result = TransferResult(TransferReason.COMPLETED, "BYE")
            self._told.set()
        self.enter(Phase.OVER)
        if broke_off(request):
            self._wire.end_by_loss()
        else:
            self._wire.end_by_caller()

    def _changed(self, request: Request, transaction: Transaction) -> None:
        """The far end changes the call: hold, resume, another address."""
        assert self.dialog is not None
        if self._phase is Phase.ACCEPTED:
            self._agent.respond(transaction, 491)
            return
        headers = [self._agent.contact(self.peer), ALLOW, SDP_TYPE]
        try:
            self.dialog.refresh(request)
            self._session = (self._session[0], self._session[1] + 1)
            if request.body:
                assert self._agreed is not None
                agreed = sdp.moved(self._agreed, sdp.parse(request.body), self.codecs)
                self.agree(agreed)
                body = self.answer(agreed)
            else:
                body = self.offer()
        except (sdp.BadSdp, BadSip):
            self._agent.respond(transaction, 488)
            return
        self._unacknowledged[request.cseq[0]] = transaction, not request.body
        self._agent.respond(transaction, 200, *headers, body=body, on_unacknowledged=self.lost)

    def _acknowledged(self, request: Request) -> None:
        if request.cseq[0] not in self._unacknowledged:
            return
        _, offered = self._unacknowledged[request.cseq[0]]
        # Whoever acknowledges the last has seen those before it: an ACK that was lost, or comes late, ends no call.
        for number in [number for number in self._unacknowledged if number <= request.cseq[0]]:
            self._agent.acknowledged(self._unacknowledged.pop(number)[0])
        if offered:
            try:
                media = sdp.parse(request.body)
                before = self._agreed
                self.agree(sdp.agree(media, self.codecs) if before is None else sdp.moved(before, media, self.codecs))
            except sdp.BadSdp:
                log.info("the far end answered our offer of media with nothing that we speak")
                self.lost()
                return
        self.enter(Phase.STANDING)

    def accepted(self, transaction: Transaction, *, offered: bool) -> None:
        """Our success is under way; its ACK makes the dialog stand. ``offered``: the ACK brings the answer to it."""
        self._unacknowledged[transaction.request.cseq[0]] = transaction, offered
        self.enter(Phase.ACCEPTED)

    def lost(self) -> None:
        """The far end never acknowledged, or cannot be agreed with: end it."""
        if self._phase is not Phase.OVER:
            if self._phase in (Phase.ACCEPTED, Phase.STANDING):
                self._say_bye(lambda response: None)
            self.enter(Phase.OVER)
            self._wire.end_by_loss()

    # What the call asks

    async def hang_up(self) -> None:
        if self._phase not in (Phase.ACCEPTED, Phase.STANDING):
            return
        confirmed = asyncio.Event()
        self._say_bye(lambda response: confirmed.set())
        self.enter(Phase.OVER)
        try:
            async with asyncio.timeout(BYE_S):
                await confirmed.wait()
        except TimeoutError:
            log.debug("the hang-up was not confirmed in time")

    def _say_bye(self, on_response: Callable[[Response | None], None]) -> None:
        if self.dialog is not None:
            self._agent.start(self.dialog.request("BYE"), self.peer, on_response)

    async def refer(self, target: TransferTarget) -> TransferResult:
        if self._phase is not Phase.STANDING or self.dialog is None:
            return TransferResult(TransferReason.TRUNK_ERROR, "no dialog")
        referral = self._referral = Referral()
        dialog, contact = self.dialog, self._agent.contact(self.peer)

        def make(*more: tuple[str, str]) -> Request:
            referred = ("referred-by", contact[1])
            return dialog.request("REFER", contact, ("refer-to", f"<{self._address(target.to)}>"), referred, *more)

        try:
            async with asyncio.timeout(target.timeout_s):
                response = await self._agent.ask(make, self.peer, self._credentials)
                if response is None:
                    return TransferResult(TransferReason.TRUNK_ERROR, "no response")
                if response.status >= 300:
                    return refused(response.status)
                return await self._outcome(referral)
        except TimeoutError:
            return referral.result or referral.given_up()
        except asyncio.CancelledError:
            if referral.result is not None:
                return referral.result
            raise

    async def _outcome(self, referral: Referral) -> TransferResult:
        while referral.result is None:
            if self._phase is Phase.OVER:
                return TransferResult(TransferReason.TRUNK_ERROR, "the dialog ended")
            self._told.clear()
            await self._told.wait()
        return referral.result

    def _address(self, to: str) -> str:
        """A number is one at the far end's own exchange."""
        if to.startswith(("sip:", "sips:")):
            return to
        assert self.dialog is not None
        target: Any = self.dialog.target
        host = f"{target.host}:{target.port}" if target.port else target.host
        return f"sip:{to}@{self._credentials.domain if self._credentials else host}"
