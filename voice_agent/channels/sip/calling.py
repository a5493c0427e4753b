"""A call of ours, until somebody answers: ringing, proving who we are, giving up."""

from __future__ import annotations

import asyncio
import re
import secrets

from voice_agent.channels.outbound import DialOutcome, DialResult
from voice_agent.channels.sip import sdp
from voice_agent.channels.sip.addresses import BadSip, NameAddress, SipUri
from voice_agent.channels.sip.agent import Credentials, UserAgent
from voice_agent.channels.sip.dialog import Dialog
from voice_agent.channels.sip.digest import authorization
from voice_agent.channels.sip.leg import ALLOW, SDP_TYPE, Leg, Phase
from voice_agent.channels.sip.message import Headers, Request, Response
from voice_agent.channels.sip.ports import NoPort
from voice_agent.channels.sip.referral import outcome
from voice_agent.channels.sip.transactions import Transaction
from voice_agent.transfers import TransferReason

OUTCOMES = {
    TransferReason.BUSY: DialOutcome.BUSY,
    TransferReason.NO_ANSWER: DialOutcome.NO_ANSWER,
    TransferReason.DECLINED: DialOutcome.DECLINED,
    TransferReason.UNREACHABLE: DialOutcome.UNREACHABLE,
}
"""A status means the same whoever has called; what is not listed is a fault of the trunk."""
_DIALLED = re.compile(r"\+[1-9]\d{2,14}|sips?:[A-Za-z0-9+._~%*#-]+@[A-Za-z0-9.\[\]:-]+")


def is_address(to: str) -> bool:
    """Whether it is a number in international form, or an address, that could be called."""
    if not _DIALLED.fullmatch(to):
        return False
    try:
        return to.startswith("+") or bool(SipUri.parse(to))
    except BadSip:
        return False


class Calling:
    """Places one call on a `Leg` in phase `CALLING`."""

    def __init__(self, agent: UserAgent, leg: Leg, credentials: Credentials | None, exchange: str) -> None:
        self._agent, self._leg = agent, leg
        self._credentials, self._exchange = credentials, exchange
        self._responses: asyncio.Queue[Response | None] = asyncio.Queue()
        self._ringing: Transaction | None = None
        self._call_id, self._tag = secrets.token_hex(12), secrets.token_hex(8)
        self._sequence = 0
        self._acknowledgement: Request | None = None
        self._last: Request | None = None
        self._declined: set[str] = set()
        self._over = False

    async def place(self, to: str, ring_timeout_s: float) -> DialResult:
        """Call; return once it is answered, refused, or given up. Taken back when cancelled."""
        domain = self._credentials.domain if self._credentials else ""
        uri = SipUri.parse(f"sip:{to}@{domain}" if to.startswith("+") else to)
        peer = await self._agent.resolve(SipUri.parse(f"sip:{self._exchange}") if self._exchange else uri)
        if peer is None:
            return DialResult(DialOutcome.UNREACHABLE, "no address")
        self._leg.peer = peer
        self._agent.budget.hold(self._leg, peer[0])
        try:
            await self._leg.open_media()
        except NoPort:
            return DialResult(DialOutcome.NOT_READY, "no media port")
        try:
            async with asyncio.timeout(ring_timeout_s):
                return await self._invite(uri)
        except TimeoutError:
            return DialResult(DialOutcome.NO_ANSWER, "timeout")
        finally:
            self._over = True
            if self._ringing is not None and self._leg.phase is Phase.CALLING:
                self._agent.cancel(self._ringing)
            while not self._responses.empty():  # answered at the very end of the time
                self._told(self._responses.get_nowait())

    async def _invite(self, uri: SipUri) -> DialResult:
        request = self._request(uri)
        self._ringing = self._agent.start(request, self._leg.peer, self._told)
        proved = False
        while True:
            response = await self._responses.get()
            if response is None:
                self._ringing = None
                return DialResult(DialOutcome.UNREACHABLE, "no response")
            if response.status < 200:
                continue
            self._ringing = None
            if response.status in (401, 407) and self._credentials is not None and not proved:
                user, password = self._credentials.user, self._credentials.password
                proof = authorization(response, request, user, password, secrets.token_hex(8))
                if proof is not None:
                    proved, request = True, self._request(uri, proof)
                    self._ringing = self._agent.start(request, self._leg.peer, self._told)
                    continue
            if response.status < 300:
                return self._answered(request, response)
            reason = outcome(response.status).reason
            return DialResult(OUTCOMES.get(reason, DialOutcome.TRUNK_ERROR), str(response.status))

    def _request(self, uri: SipUri, *more: tuple[str, str]) -> Request:
        self._sequence += 1
        contact = self._agent.contact(self._leg.peer)
        us = NameAddress.parse(contact[1])
        if self._credentials is not None:
            us = NameAddress(SipUri(self._credentials.domain, self._credentials.user))
        lines = [
            ("max-forwards", "70"),
            ("from", str(us.tagged(self._tag))),
            ("to", f"<{uri}>"),
            ("call-id", self._call_id),
            ("cseq", f"{self._sequence} INVITE"),
            contact,
            ALLOW,
            SDP_TYPE,
            *more,
        ]
        self._last = Request(Headers(lines), self._leg.offer(), "INVITE", str(uri))
        return self._last

    def _told(self, response: Response | None) -> None:
        """Every response, the repeated ones too: a success that is repeated has lost its ACK."""
        over = self._over or self._leg.phase is not Phase.CALLING
        if over and response is not None and 200 <= response.status < 300:
            self._answered_again(response)
            return
        self._responses.put_nowait(response)

    def _answered_again(self, response: Response) -> None:
        dialog = self._leg.dialog
        if self._acknowledgement is not None and dialog is not None and response.receiver.tag == dialog.theirs.tag:
            self._agent.send(self._acknowledgement, self._leg.peer)
        else:
            self._decline(response)

    def _decline(self, response: Response) -> None:
        """Somebody has answered a call that is taken back, or as the second one: they are told that nobody is there."""
        ringing = self._last
        if ringing is None:
            return
        try:
            dialog = Dialog.of_success(ringing, response)
        except BadSip:
            return
        self._agent.send(dialog.request("ACK", sequence=ringing.cseq[0]), self._leg.peer)
        if response.receiver.tag not in self._declined:
            self._declined.add(response.receiver.tag)
            self._agent.start(dialog.request("BYE"), self._leg.peer, lambda response: None)

    def _answered(self, request: Request, response: Response) -> DialResult:
        leg = self._leg
        try:
            dialog = leg.dialog = Dialog.of_success(request, response)
        except BadSip:
            return DialResult(DialOutcome.TRUNK_ERROR, "a success without an address")
        self._acknowledgement = dialog.request("ACK", sequence=request.cseq[0])
        self._agent.send(self._acknowledgement, leg.peer)
        leg.enter(Phase.STANDING)
        try:
            leg.agree(sdp.agree(sdp.parse(response.body), leg.codecs))
        except sdp.BadSdp:
            leg.lost()
            return DialResult(DialOutcome.TRUNK_ERROR, "no codec that both sides speak")
        return DialResult(DialOutcome.ANSWERED)


async def first_of(*events: asyncio.Event) -> None:
    """Return when one of the events is set."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
