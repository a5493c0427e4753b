"""The socket that SIP runs through, and the time that its transactions are fed with."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass

from voice_agent.channels.sip.addresses import BadSip, SipUri
from voice_agent.channels.sip.budget import MessageBudget
from voice_agent.channels.sip.digest import authorization
from voice_agent.channels.sip.message import Headers, Request, Response, parse
from voice_agent.channels.sip.states import State, Timers
from voice_agent.channels.sip.transactions import (
    Address,
    Answered,
    Arrived,
    Happening,
    TimedOut,
    Transaction,
    Transactions,
)
from voice_agent.telemetry.metrics import CONNECTIONS_REFUSED

log = logging.getLogger(__name__)

TICK_S = 0.05
"""How finely repeats are timed, while there are any."""
RESOLVE_S = 3.0
"""Limit on looking up a host's address."""

OnRequest = Callable[[Request, Transaction | None, Address], None]
OnResponse = Callable[[Response | None], None]
"""Called with each response; with None when nobody answered."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are to an exchange. ``realm_host``: its name, as it stands in our address."""

    user: str
    password: str
    domain: str


class UserAgent(asyncio.DatagramProtocol):
    """Sends and receives SIP by UDP. Requests of others go to ``on_request``.

    Args:
        is_known: Whether messages of an address are welcome, call or no call.
        public_address: Where others reach us, if not at the socket's own address.

    Attributes:
        budget: Whose messages are read. Calls keep their far ends' addresses known in it.
    """

    def __init__(
        self,
        on_request: OnRequest,
        is_known: Callable[[str], bool],
        *,
        public_address: str = "",
        timers: Timers | None = None,
    ) -> None:
        self._on_request, self._public = on_request, public_address
        self._transactions = Transactions(timers)
        self._loop = asyncio.get_running_loop()
        self.budget = MessageBudget(lambda host: is_known(host) or host in self._transactions.asked, self._loop.time())
        self._waiting: dict[Transaction, OnResponse] = {}
        self._unacknowledged: dict[Transaction, Callable[[], None]] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._family = socket.AF_INET
        self._host, self._port = "", 0

    # The socket

    async def open(self, sock: socket.socket) -> None:
        """Serve on a bound socket."""
        self._family = sock.family
        self._host, self._port = sock.getsockname()[:2]
        self._transport, _ = await self._loop.create_datagram_endpoint(lambda: self, sock=sock)

    def close(self) -> None:
        """Close the socket; nobody is told anything more."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._transport is not None:
            self._transport.close()
        self._transport = None
        self._waiting.clear()
        self._unacknowledged.clear()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        source, now = (addr[0], addr[1]), self._loop.time()
        if not data.strip():
            return  # keeps a router's way open, and wants no answer
        if not self.budget.take(source[0], now):
            CONNECTIONS_REFUSED.labels(channel="sip", code="too_many_messages").inc()
            return
        try:
            happening = self._transactions.receive(parse(data), source, now)
        except BadSip as fault:
            CONNECTIONS_REFUSED.labels(channel="sip", code="malformed").inc()
            log.debug("a SIP message could not be read: %s", fault)
            return
        try:
            self._tell(happening, source)
        except Exception:
            # One message's fault must not silence the others, nor stay in the way of what follows.
            log.exception("a SIP message could not be acted on")
            if isinstance(happening, Arrived) and happening.transaction is not None:
                self.refuse(happening.transaction, 500)
        self._flush()

    def error_received(self, exc: Exception) -> None:
        """A far end's port is closed; its transactions run out of time."""

    def _tell(self, happening: Happening | None, source: Address) -> None:
        match happening:
            case Arrived(request, transaction):
                self._on_request(request, transaction, source)
            case Answered(transaction, response):
                if tell := self._waiting.get(transaction):
                    if response.status >= 300 or (response.status >= 200 and transaction.request.method != "INVITE"):
                        del self._waiting[transaction]
                    tell(response)
            case TimedOut(transaction):
                if tell := self._waiting.pop(transaction, None):
                    tell(None)
                elif lost := self._unacknowledged.pop(transaction, None):
                    lost()

    def _tick(self) -> None:
        self._ticking = None
        for happening in self._transactions.tick(self._loop.time()):
            self._tell(happening, ("", 0))
        for over in [one for one in self._waiting if one.state is State.TERMINATED]:
            del self._waiting[over]  # an INVITE that was answered: its success may have been repeated until now
        self._flush()

    def _flush(self) -> None:
        outgoing, self._transactions.outgoing = self._transactions.outgoing, []
        for data, to in outgoing:
            self._send(data, to)
        if self._ticking is None and len(self._transactions) and self._transport is not None:
            self._ticking = self._loop.call_later(TICK_S, self._tick)

    def _send(self, data: bytes, to: Address) -> None:
        if self._transport is None or not 0 < to[1] <= 65_535:
            return
        try:
            self._transport.sendto(data, to)
        except (OSError, ValueError):
            log.debug("a SIP message could not be sent")

    # Answers

    def respond(
        self,
        transaction: Transaction,
        status: int,
        *more: tuple[str, str],
        tag: str = "",
        body: bytes = b"",
        on_unacknowledged: Callable[[], None] | None = None,
    ) -> None:
        """Answer a request. ``on_unacknowledged``: called where a success of an INVITE is never acknowledged."""
        response = transaction.request.respond(status, *more, tag=tag, body=body)
        if on_unacknowledged is not None:
            self._unacknowledged[transaction] = on_unacknowledged
        self._transactions.respond(transaction, response, self._loop.time())
        self._flush()

    def refuse(self, transaction: Transaction, status: int, *more: tuple[str, str]) -> None:
        """Answer and remember nothing: whoever repeats the request is judged anew."""
        self._transactions.forget(transaction)
        response = transaction.request.respond(status, *more, tag=secrets.token_hex(8))
        self._send(bytes(response), transaction.peer)

    def acknowledged(self, transaction: Transaction) -> None:
        """The ACK of a success has come."""
        self._unacknowledged.pop(transaction, None)
        self._transactions.acknowledged(transaction, self._loop.time())

    def cancelled_by(self, request: Request) -> Transaction | None:
        """Return the INVITE that a CANCEL takes back."""
        return self._transactions.cancelled_by(request)

    # Requests

    def start(self, request: Request, peer: Address, on_response: OnResponse) -> Transaction:
        """Send a request."""
        now, sent_by, branch = self._loop.time(), self.sent_by(peer), secrets.token_hex(8)
        transaction = self._transactions.request(request, peer, now, sent_by, branch)
        self._waiting[transaction] = on_response
        self._flush()
        return transaction

    def forget(self, transaction: Transaction) -> None:
        """Nobody waits for its responses any more."""
        self._waiting.pop(transaction, None)

    def cancel(self, invite: Transaction) -> None:
        """Take back an INVITE of ours that rings."""
        self._transactions.cancel(invite, self._loop.time())
        self._flush()

    async def ask(
        self, make: Callable[..., Request], peer: Address, credentials: Credentials | None = None
    ) -> Response | None:
        """Send a request that is no INVITE and return its final response; None if there is none.

        Args:
            make: Makes the request, given further headers: again where the far end wants to know who we are.
        """
        response = await self._ask(request := make(), peer)
        if response is not None and response.status in (401, 407) and credentials is not None:
            proof = authorization(response, request, credentials.user, credentials.password, secrets.token_hex(8))
            if proof is not None:
                response = await self._ask(make(proof), peer)
        return response

    async def _ask(self, request: Request, peer: Address) -> Response | None:
        answer: asyncio.Future[Response | None] = self._loop.create_future()

        def told(response: Response | None) -> None:
            if not answer.done() and (response is None or response.status >= 200):
                answer.set_result(response)

        transaction = self.start(request, peer, told)
        try:
            return await answer
        finally:
            self.forget(transaction)

    def send(self, request: Request, peer: Address) -> None:
        """Send a request that is not answered: an ACK."""
        via = ("via", f"SIP/2.0/UDP {self.sent_by(peer)};branch=z9hG4bK{secrets.token_hex(8)};rport")
        self._send(bytes(Request(Headers([via, *request.headers]), request.body, request.method, request.uri)), peer)

    # Addresses

    def address(self, peer: Address) -> str:
        """Return our IP address as ``peer`` sees it."""
        if self._public:
            return self._public
        if self._host not in ("0.0.0.0", "::"):
            return self._host
        with socket.socket(self._family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(peer)
                name: str = probe.getsockname()[0]
            except OSError:
                return self._host
        return name

    def sent_by(self, peer: Address) -> str:
        """Return our host and port as ``peer`` sees them."""
        host = self.address(peer)
        return f"[{host}]:{self._port}" if ":" in host else f"{host}:{self._port}"

    def contact(self, peer: Address) -> tuple[str, str]:
        """Return the header that says where we are."""
        return "contact", f"<sip:agent@{self.sent_by(peer)}>"

    async def resolve(self, uri: SipUri) -> Address | None:
        """Return where a URI leads, or None. Names are looked up as hosts only: no NAPTR, no SRV."""
        port = uri.port or 5060
        try:
            async with asyncio.timeout(RESOLVE_S):
                found = await self._loop.getaddrinfo(
                    uri.host.strip("[]"), port, family=self._family, type=socket.SOCK_DGRAM
                )
        except (OSError, TimeoutError, UnicodeError):  # the last for a name that is none: a..b
            return None
        return (str(found[0][4][0]), port) if found else None
