"""Requests and responses that may get lost: SIP's transactions over UDP (RFC 3261, section 17; RFC 6026). Pure.

Fed messages and the time in seconds; what is to be sent collects in `Transactions.outgoing`::

    INVITE ─▶ 100 ───────▶ 200 200  200   200 … until the ACK, or 64·T1: then the call is given up
    caller    │ our answer │ T1  2T1  4T1 … T2
              └ the same INVITE again: the last response again
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from voice_agent.channels.sip.addresses import BadSip
from voice_agent.channels.sip.message import Headers, Request, Response
from voice_agent.channels.sip.states import TIMINGS, TRANSITIONS, Action, Event, Kind, State, Timers, Timing

Address = tuple[str, int]
MAX_TRANSACTIONS = 4000
"""More new requests are dropped; their senders repeat them."""
MAGIC = "z9hG4bK"
TAKEN_BACK_T1 = 64
"""Life of an INVITE that was taken back, as a factor of T1."""


@dataclass(eq=False)
class Transaction:
    """One request and its responses. ``peer``: where our messages go."""

    kind: Kind
    request: Request
    peer: Address
    key: tuple[str, ...]
    state: State = State.TRYING
    _last: bytes = field(default=b"", repr=False)
    _repeat_at: float | None = None
    _spacing: float = 0.0
    _ends_at: float | None = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request that is new; ``transaction`` is None for an ACK, which has none."""

    request: Request
    transaction: Transaction | None


@dataclass(frozen=True, slots=True)
class Answered:
    """A response to a request of ours."""

    transaction: Transaction
    response: Response


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Nobody answered our request, or acknowledged our success."""

    transaction: Transaction


Happening = Arrived | Answered | TimedOut


class Transactions:
    """All transactions of one socket.

    Attributes:
        outgoing: What is to be sent, and where; whoever feeds this takes it.
        asked: Hosts with requests of ours that are not over, and how many.
    """

    def __init__(self, timers: Timers | None = None) -> None:
        self._timers = timers or Timers()
        self._known: dict[tuple[str, ...], Transaction] = {}
        self._branches = itertools.count(1)
        self.outgoing: list[tuple[bytes, Address]] = []
        self.asked: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def receive(self, message: Request | Response, source: Address, now: float) -> Happening | None:
        """Take one message; return what is new in it.

        Raises:
            BadSip: A request that names no transaction.
        """
        if isinstance(message, Response):
            return self._response(message, now)
        if not message.via.branch:
            raise BadSip("a Via without a branch")
        request = message.received_from(source)
        method = "INVITE" if request.method == "ACK" else request.method
        key = _server_key(request, method)
        known = self._known.get(key)
        if request.method == "ACK":
            if known is None or known.state is State.ACCEPTED:
                return Arrived(request, None)
            self._happens(known, Event.ACK, now)
            return None
        if known is not None:
            self._happens(known, Event.AGAIN, now)
            return None
        if len(self._known) >= MAX_TRANSACTIONS:
            return None
        kind = Kind.INVITE_SERVER if request.method == "INVITE" else Kind.SERVER
        transaction = Transaction(kind, request, message.via.answer_to(source), key)
        self._known[key] = transaction
        return Arrived(request, transaction)

    def respond(self, transaction: Transaction, response: Response, now: float) -> None:
        """Answer a request. A second final response changes nothing."""
        self._happens(transaction, _event(response), now, response)

    def forget(self, transaction: Transaction) -> None:
        """The request was answered without state: its repetition is new."""
        self._known.pop(transaction.key, None)

    def cancelled_by(self, cancel: Request) -> Transaction | None:
        """Return the INVITE that a CANCEL takes back, while there is one."""
        return self._known.get(_server_key(cancel, "INVITE"))

    def acknowledged(self, transaction: Transaction, now: float) -> None:
        """The ACK of a success has come: it is a request of its own, which only its dialog recognises."""
        self._happens(transaction, Event.ACK, now)

    def request(self, request: Request, peer: Address, now: float, sent_by: str, branch: str) -> Transaction:
        """Send a request of ours.

        Args:
            sent_by: Our host and port, for the Via.
            branch: An unguessable word; a number is added to it.
        """
        branch = f"{MAGIC}{branch}{next(self._branches)}"
        via = ("via", f"SIP/2.0/UDP {sent_by};branch={branch};rport")
        return self._start(
            Request(Headers([via, *request.headers]), request.body, request.method, request.uri), peer, now
        )

    def cancel(self, invite: Transaction, now: float) -> Transaction:
        """Take back an INVITE of ours that nobody has answered yet (RFC 3261, section 9.1).

        A far end that says no more has 64·T1 for it; after that the INVITE is over as well.
        """
        invite._ends_at = now + TAKEN_BACK_T1 * self._timers.t1
        asked = invite.request
        kept = [(n, v) for n, v in asked.headers if n in ("from", "to", "call-id", "route", "max-forwards")]
        lines = [("via", asked.headers.all("via")[0]), *kept, ("cseq", f"{asked.cseq[0]} CANCEL")]
        return self._start(Request(Headers(lines), b"", "CANCEL", asked.uri), invite.peer, now)

    def tick(self, now: float) -> Iterator[TimedOut]:
        """Repeat what is due, and forget what is over; yields what nobody answered."""
        for transaction in list(self._known.values()):
            if transaction._ends_at is not None and now >= transaction._ends_at:
                if Action.FAIL in self._happens(transaction, Event.EXPIRED, now):
                    yield TimedOut(transaction)
            elif transaction._repeat_at is not None and now >= transaction._repeat_at:
                self._send(transaction)
                timing = TIMINGS[transaction.kind, transaction.state]
                doubled = transaction._spacing * 2
                transaction._spacing = min(doubled, self._timers.t2) if timing.capped else doubled
                transaction._repeat_at = now + transaction._spacing

    def _start(self, request: Request, peer: Address, now: float) -> Transaction:
        kind = Kind.INVITE_CLIENT if request.method == "INVITE" else Kind.CLIENT
        key = ("client", request.method, request.via.branch)
        transaction = Transaction(kind, request, peer, key, _last=bytes(request))
        self._known[key] = transaction
        self.asked[peer[0]] += 1
        self._enter(transaction, State.TRYING, now)
        self._send(transaction)
        return transaction

    def _response(self, response: Response, now: float) -> Answered | None:
        known = self._known.get(("client", response.cseq[1], response.via.branch))
        if known is None:
            return None
        actions = self._happens(known, _event(response), now, response)
        return Answered(known, response) if Action.PASS in actions else None

    def _happens(
        self, transaction: Transaction, event: Event, now: float, response: Response | None = None
    ) -> tuple[Action, ...]:
        state, actions = TRANSITIONS.get((transaction.kind, transaction.state, event), (transaction.state, ()))
        for action in actions:
            if action is Action.SEND:
                assert response is not None
                transaction._last = bytes(response)
                self._send(transaction)
            elif action is Action.REPEAT:
                self._send(transaction)
            elif action is Action.ACKNOWLEDGE:
                assert response is not None
                self.outgoing.append((bytes(_acknowledgement(transaction.request, response)), transaction.peer))
        if state is not transaction.state:
            self._enter(transaction, state, now)
        return actions

    def _enter(self, transaction: Transaction, state: State, now: float) -> None:
        before, transaction.state = transaction.state, state
        if state is State.TERMINATED:
            if self._known.pop(transaction.key, None) and transaction.kind in (Kind.CLIENT, Kind.INVITE_CLIENT):
                self.asked -= Counter((transaction.peer[0],))  # keeps none at zero
            return
        timing = TIMINGS.get((transaction.kind, state), Timing())
        life_s = timing.life_t1 * self._timers.t1 + timing.life_t4 * self._timers.t4
        if (transaction.kind, before, state) == (Kind.CLIENT, State.TRYING, State.PROCEEDING):
            # A provisional response slows the repeats down; the time for the final one runs on.
            transaction._spacing = self._timers.t2
        else:
            transaction._ends_at = now + life_s if life_s else None
            transaction._spacing = self._timers.t1
        transaction._repeat_at = now + transaction._spacing if timing.repeats else None

    def _send(self, transaction: Transaction) -> None:
        if transaction._last:
            self.outgoing.append((transaction._last, transaction.peer))


def _event(response: Response) -> Event:
    if response.status < 200:
        return Event.PROVISIONAL
    return Event.SUCCESS if response.status < 300 else Event.FAILURE


def _acknowledgement(invite: Request, response: Response) -> Request:
    """The ACK of a failure has the Via of the INVITE (RFC 3261, section 17.1.1.3)."""
    kept = [(n, v) for n, v in invite.headers if n in ("from", "call-id", "route", "max-forwards")]
    lines = [("via", invite.headers.all("via")[0]), *kept, ("to", response.headers.get("to"))]
    return Request(Headers([*lines, ("cseq", f"{invite.cseq[0]} ACK")]), b"", "ACK", invite.uri)


def _server_key(request: Request, method: str) -> tuple[str, ...]:
    via = request.via
    return ("server", method, via.branch, via.host, str(via.port), *_older(request))


def _older(request: Request) -> tuple[str, ...]:
    """What tells requests of clients apart whose branches are not unique (RFC 2543)."""
    if request.via.branch.startswith(MAGIC):
        return ()
    return (request.call_id, request.sender.tag, str(request.cseq[0]))
