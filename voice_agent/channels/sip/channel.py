"""The SIP channel: takes calls at a UDP port, places calls, and stays registered at an exchange."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from dataclasses import replace

from voice_agent.call.clock import MediaClock
from voice_agent.channels import identifiers
from voice_agent.channels.desk import CallDesk, CallRefused, CallRequest
from voice_agent.channels.outbound import DialOutcome, DialResult
from voice_agent.channels.sip import sdp
from voice_agent.channels.sip.addresses import BadSip
from voice_agent.channels.sip.agent import UserAgent
from voice_agent.channels.sip.answering import WhoAnswered
from voice_agent.channels.sip.calling import Calling, first_of, is_address
from voice_agent.channels.sip.codecs import available
from voice_agent.channels.sip.dialog import Dialog, Key
from voice_agent.channels.sip.digest import Verifier
from voice_agent.channels.sip.door import Door
from voice_agent.channels.sip.facts import facts_of
from voice_agent.channels.sip.leg import ALLOW, SDP_TYPE, Leg, Phase
from voice_agent.channels.sip.message import Request
from voice_agent.channels.sip.ports import MediaPorts, NoPort
from voice_agent.channels.sip.registration import Registration
from voice_agent.channels.sip.setup import SipSetup
from voice_agent.channels.sip.transactions import Address, Transaction
from voice_agent.channels.sip.wire import CHANNEL, SipWire
from voice_agent.telemetry.metrics import CONNECTIONS_REFUSED

log = logging.getLogger(__name__)

MAX_LEGS = 500
"""Dialogs at once, those that wait for admission included."""
RETRY_AFTER_S = 10
CLOSE_S = 1.0
"""Limit on telling the exchange at the end that we are gone."""
STATUS = {
    "not_ready": 503,
    "draining": 503,
    "internal": 503,
    "at_capacity": 486,
    "conversation_busy": 486,
    "channel_off": 480,
}
"""What a refused caller is answered; anything else is 480."""


class SipChannel:
    """Implements `voice_agent.channels.outbound.OutboundDialer` and `TellsWhoAnswered` of the calls it places."""

    def __init__(self, desk: CallDesk, setup: SipSetup) -> None:
        self._desk, self._setup = desk, setup
        self._codecs = tuple(available(setup.codecs))
        if len(self._codecs) < len(setup.codecs):
            log.warning("G.722 is not spoken: it needs PyAV, which the extra `sip` brings")
        verifier = Verifier(setup.passwords, secrets.token_bytes(32)) if setup.passwords else None
        self.door = Door(setup.networks, verifier)
        self._legs: dict[Key, Leg] = {}
        self._pending: dict[Transaction, tuple[Leg, asyncio.Task[None]]] = {}
        self._ports = MediaPorts(setup.host, setup.rtp_ports)
        self._who = WhoAnswered(lambda id, who: desk.note(id, "answered_by", who=who))
        self._agent: UserAgent
        self._clock: MediaClock
        self._group: asyncio.TaskGroup | None = None

    @property
    def legs(self) -> int:
        """Dialogs that stand or are being set up."""
        return len({*self._legs.values(), *(leg for leg, _ in self._pending.values())})

    async def run(self, sock: socket.socket) -> None:
        """Serve until cancelled; then the socket is closed. Calls are ended by whoever drains the service, before."""
        setup = self._setup
        known, public = self.door.is_known, setup.public_address
        self._agent = UserAgent(self._receive, known, public_address=public, timers=setup.timers)
        registration = None
        if setup.registrar and setup.credentials is not None:
            registration = Registration(self._agent, setup.registrar, setup.credentials, setup.expires_s, self.door)
        try:
            async with MediaClock() as self._clock, asyncio.TaskGroup() as group:
                self._group = group
                await self._agent.open(sock)
                if registration is not None:
                    group.create_task(registration.run(), name="sip.registration")
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
            if registration is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_S):
                        await registration.withdraw()
            self._agent.close()

    # What comes in

    def _receive(self, request: Request, transaction: Transaction | None, source: Address) -> None:
        leg = self._legs.get((request.call_id, request.receiver.tag, request.sender.tag))
        if leg is not None and request.method != "CANCEL":
            leg.receive(request, transaction)
            return
        if transaction is None:
            return
        now = asyncio.get_running_loop().time()
        if request.method == "CANCEL":
            self._cancel(request, transaction)
        elif (refusal := self.door.judge(request, source[0], now)) is not None:
            if refusal.status != 401 or request.headers.get("authorization"):
                CONNECTIONS_REFUSED.labels(channel=CHANNEL, code=refusal.code).inc()
                log.warning("connection refused: %s", refusal.code)
            self._agent.refuse(transaction, refusal.status, *refusal.headers)
        elif request.receiver.tag:
            self._agent.refuse(transaction, 481)
        elif required := request.headers.all("require"):
            self._agent.refuse(transaction, 420, *(("unsupported", name) for name in required))
        elif request.method == "OPTIONS":
            self._agent.refuse(transaction, 200, ALLOW, ("accept", "application/sdp"))
        elif request.method == "INVITE":
            self._invited(request, transaction, source)
        else:
            self._agent.refuse(transaction, 405, ALLOW)

    def _invited(self, request: Request, transaction: Transaction, source: Address) -> None:
        if self._group is None or self.legs >= MAX_LEGS:
            self._agent.refuse(transaction, 503, ("retry-after", str(RETRY_AFTER_S)))
            return
        kind = request.headers.get("content-type").partition(";")[0].strip().lower()
        if request.body and kind != "application/sdp":
            self._agent.refuse(transaction, 415, ("accept", "application/sdp"))
            return
        try:
            offered = sdp.agree(sdp.parse(request.body), self._codecs) if request.body else None
            dialog = Dialog.of_invite(request, secrets.token_hex(8))
        except sdp.BadSdp as fault:
            log.info("a call cannot be taken: %s", fault)
            self._agent.refuse(transaction, 488)
            return
        except BadSip:
            self._agent.refuse(transaction, 400)
            return
        self._agent.respond(transaction, 100)
        wire = SipWire(self._clock, self._ports)
        leg = Leg(
            self._agent,
            wire,
            self._codecs,
            Phase.OFFERED,
            credentials=self._setup.credentials,
            on_over=self._forget,
        )
        leg.dialog = dialog
        carried = self._carry(request, transaction, leg, wire, offered, source)
        self._pending[transaction] = leg, self._group.create_task(carried, name="sip.call")

    def _cancel(self, request: Request, transaction: Transaction) -> None:
        invite = self._agent.cancelled_by(request)
        pending = self._pending.get(invite) if invite is not None else None
        if invite is None:
            self._agent.refuse(transaction, 481)
            return
        self._agent.respond(transaction, 200, tag=secrets.token_hex(8))
        if pending is not None and pending[0].phase is Phase.OFFERED:
            leg, task = pending
            leg.enter(Phase.OVER)
            assert leg.dialog is not None
            self._agent.respond(invite, 487, tag=leg.dialog.ours.tag)
            task.cancel()

    async def _carry(
        self,
        request: Request,
        transaction: Transaction,
        leg: Leg,
        wire: SipWire,
        offered: sdp.Agreed | None,
        source: Address,
    ) -> None:
        """Take one call from its INVITE to its end."""

        async def connect(call_id: str) -> bool:
            return await self._accept(transaction, leg, wire, offered)

        assert leg.dialog is not None
        try:
            leg.peer = await self._peer(request, leg.dialog, source)
            self._agent.budget.hold(leg, source[0], leg.peer[0])
            facts = facts_of(request)
            await self._desk.take(
                CallRequest(identifiers.new_conversation_id(), CHANNEL, connect=connect, facts=facts), wire
            )
        except CallRefused as refusal:
            if leg.enter(Phase.OVER):
                CONNECTIONS_REFUSED.labels(channel=CHANNEL, code=refusal.code).inc()
                log.warning("connection refused: %s", refusal.code)
                status = STATUS.get(refusal.code, 480)
                retry = (("retry-after", str(RETRY_AFTER_S)),) if refusal.retry else ()
                self._agent.respond(transaction, status, *retry, tag=leg.dialog.ours.tag)
        except Exception:
            log.exception("a SIP call failed")
        finally:
            self._pending.pop(transaction, None)
            if leg.phase is Phase.OFFERED:
                self._agent.respond(transaction, 503, ("retry-after", str(RETRY_AFTER_S)), tag=leg.dialog.ours.tag)
            leg.lost()
            wire.close()

    async def _peer(self, request: Request, dialog: Dialog, source: Address) -> Address:
        """Where requests of ours go: where the call came from, which holds behind routers; or, where it came through
        a proxy that wants no more of it, to the caller's own address."""
        if dialog.route or len(request.headers.all("via")) == 1:
            return source
        return await self._agent.resolve(dialog.target) or source

    async def _accept(self, transaction: Transaction, leg: Leg, wire: SipWire, offered: sdp.Agreed | None) -> bool:
        """Answer, and wait until the caller confirms it, or is heard."""
        try:
            await leg.open_media()
        except NoPort:
            log.error("no RTP port is free: widen channels.sip.rtp_ports")
            raise CallRefused("at_capacity", "No media port is free.") from None
        if leg.phase is not Phase.OFFERED or leg.dialog is None:
            return False
        if offered is not None:
            leg.agree(offered)
        body = leg.answer(offered) if offered is not None else leg.offer()
        self._legs[leg.dialog.key] = leg
        leg.accepted(transaction, offered=offered is None)
        self._agent.respond(
            transaction,
            200,
            self._agent.contact(leg.peer),
            ALLOW,
            SDP_TYPE,
            tag=leg.dialog.ours.tag,
            body=body,
            on_unacknowledged=leg.lost,
        )
        await first_of(leg.standing, leg.over, wire.media_came)
        return not leg.over.is_set()

    def _forget(self, leg: Leg) -> None:
        self._agent.budget.release(leg)
        if leg.dialog is not None:
            self._legs.pop(leg.dialog.key, None)

    # What goes out

    def answered_by(self, call_id: str) -> str:
        """See `voice_agent.channels.outbound_calls.TellsWhoAnswered`."""
        return self._who.of(call_id)

    async def dial(self, to: str, request: CallRequest, *, ring_timeout_s: float = 30.0) -> DialResult:
        """See `OutboundDialer.dial`."""
        if not is_address(to) or (to.startswith("+") and self._setup.credentials is None):
            return DialResult(DialOutcome.BAD_ADDRESS, "a SIP address, or a number where an exchange is registered at")
        if self._group is None or self.legs >= MAX_LEGS:
            return DialResult(DialOutcome.NOT_READY)
        wire = SipWire(self._clock, self._ports)
        leg = Leg(
            self._agent, wire, self._codecs, Phase.CALLING, credentials=self._setup.credentials, on_over=self._forget
        )
        calling = Calling(self._agent, leg, self._setup.credentials, self._setup.registrar)
        result: asyncio.Future[DialResult] = asyncio.get_running_loop().create_future()

        async def connect(call_id: str) -> bool:
            outcome = await calling.place(to, ring_timeout_s)
            if outcome.outcome is DialOutcome.ANSWERED:
                assert leg.dialog is not None
                self._legs[leg.dialog.key] = leg
                known_as = request.grant.call_id if request.grant else call_id
                wire.answering = self._who.listen(known_as, request.conversation_id, asyncio.get_running_loop().time())
            if not result.done():
                result.set_result(replace(outcome, call_id=call_id if leg.standing.is_set() else ""))
            return outcome.outcome is DialOutcome.ANSWERED

        async def carry() -> None:
            try:
                await self._desk.take(replace(request, channel=CHANNEL, connect=connect), wire)
            except CallRefused as refusal:
                if not result.done():
                    result.set_result(DialResult(DialOutcome.NOT_READY, refusal.code))
            except Exception:
                log.exception("a SIP call failed")
            finally:
                if not result.done():
                    result.set_result(DialResult(DialOutcome.TRUNK_ERROR))
                leg.lost()
                wire.close()

        task = self._group.create_task(carry(), name="sip.call")
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            task.cancel()
            raise
