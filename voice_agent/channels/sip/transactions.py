"""Requests and responses that may get lost: SIP's transactions over UDP (RFC 3261, section 17; RFC 6026). Pure.

Fed messages and the time in seconds; what is to be sent collects in `Transactions.outgoing`::

    INVITE ─▶ 100 ───────▶ 200 200  200   200 … until the ACK, or 64·T1: then the call is given up
    caller    │ our answer │ T1  2T1  4T1 … T2
              └ the same INVITE again: the last response again
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from voice_agent.channels.sip.addresses import BadSip
from voice_agent.channels.sip.message import Headers, Request, Response

Address = tuple[str, int]
MAX_TRANSACTIONS = 4000
"""More new requests are dropped; their senders repeat them."""
MAGIC = "z9hG4bK"


class Kind(Enum):
    INVITE_SERVER = auto()
    SERVER = auto()
    INVITE_CLIENT = auto()
    CLIENT = auto()


class State(Enum):
    TRYING = auto()
    PROCEEDING = auto()
    ACCEPTED = auto()
    """An INVITE was answered with success."""
    COMPLETED = auto()
    CONFIRMED = auto()
    TERMINATED = auto()


class Event(Enum):
    PROVISIONAL = auto()
    SUCCESS = auto()
    FAILURE = auto()
    """A final response that is no success."""
    ACK = auto()
    AGAIN = auto()
    """The far end repeats its request."""
    EXPIRED = auto()


class Action(Enum):
    SEND = auto()
    """The response that we give leaves."""
    REPEAT = auto()
    """Our last message leaves once more."""
    PASS = auto()
    """The response goes to whoever asked."""
    ACKNOWLEDGE = auto()
    """A failure of an INVITE is acknowledged."""
    FAIL = auto()
    """Whoever asked, or answered, is told that nothing came."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What runs in a state: repeats (uncapped: their spacing doubles beyond T2), and a life in seconds, as factors."""

    repeats: bool = False
    capped: bool = True
    life_t1: float = 0.0
    life_t4: float = 0.0


@dataclass(frozen=True, slots=True)
class Timers:
    """RFC 3261's T1, T2 and T4 in seconds."""

    t1: float = 0.5
    t2: float = 4.0
    t4: float = 5.0


_K, _S, _E, _A = Kind, State, Event, Action
TIMINGS: Mapping[tuple[Kind, State], Timing] = {
    (_K.INVITE_CLIENT, _S.TRYING): Timing(repeats=True, capped=False, life_t1=64),
    (_K.INVITE_CLIENT, _S.ACCEPTED): Timing(life_t1=64),
    (_K.INVITE_CLIENT, _S.COMPLETED): Timing(life_t1=64),
    (_K.CLIENT, _S.TRYING): Timing(repeats=True, life_t1=64),
    (_K.CLIENT, _S.PROCEEDING): Timing(repeats=True, life_t1=64),
    (_K.CLIENT, _S.COMPLETED): Timing(life_t4=1),
    (_K.INVITE_SERVER, _S.ACCEPTED): Timing(repeats=True, life_t1=64),
    (_K.INVITE_SERVER, _S.COMPLETED): Timing(repeats=True, life_t1=64),
    (_K.INVITE_SERVER, _S.CONFIRMED): Timing(life_t4=1),
    (_K.SERVER, _S.COMPLETED): Timing(life_t1=64),
}
TRANSITIONS: Mapping[tuple[Kind, State, Event], tuple[State, tuple[Action, ...]]] = {
    (_K.INVITE_CLIENT, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.TRYING, _E.SUCCESS): (_S.ACCEPTED, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.ACKNOWLEDGE, _A.PASS)),
    (_K.INVITE_CLIENT, _S.TRYING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.SUCCESS): (_S.ACCEPTED, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.ACKNOWLEDGE, _A.PASS)),
    (_K.INVITE_CLIENT, _S.ACCEPTED, _E.SUCCESS): (_S.ACCEPTED, (_A.PASS,)),
    (_K.INVITE_CLIENT, _S.ACCEPTED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.INVITE_CLIENT, _S.COMPLETED, _E.FAILURE): (_S.COMPLETED, (_A.ACKNOWLEDGE,)),
    (_K.INVITE_CLIENT, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.CLIENT, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.CLIENT, _S.TRYING, _E.SUCCESS): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.TRYING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.CLIENT, _S.PROCEEDING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.PASS,)),
    (_K.CLIENT, _S.PROCEEDING, _E.SUCCESS): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.PASS,)),
    (_K.CLIENT, _S.PROCEEDING, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.CLIENT, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.INVITE_SERVER, _S.TRYING, _E.AGAIN): (_S.TRYING, ()),
    (_K.INVITE_SERVER, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.TRYING, _E.SUCCESS): (_S.ACCEPTED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.AGAIN): (_S.PROCEEDING, (_A.REPEAT,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.SUCCESS): (_S.ACCEPTED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.INVITE_SERVER, _S.ACCEPTED, _E.AGAIN): (_S.ACCEPTED, (_A.REPEAT,)),
    (_K.INVITE_SERVER, _S.ACCEPTED, _E.ACK): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.ACCEPTED, _E.EXPIRED): (_S.TERMINATED, (_A.FAIL,)),
    (_K.INVITE_SERVER, _S.COMPLETED, _E.AGAIN): (_S.COMPLETED, (_A.REPEAT,)),
    (_K.INVITE_SERVER, _S.COMPLETED, _E.ACK): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.INVITE_SERVER, _S.CONFIRMED, _E.AGAIN): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.CONFIRMED, _E.ACK): (_S.CONFIRMED, ()),
    (_K.INVITE_SERVER, _S.CONFIRMED, _E.EXPIRED): (_S.TERMINATED, ()),
    (_K.SERVER, _S.TRYING, _E.AGAIN): (_S.TRYING, ()),
    (_K.SERVER, _S.TRYING, _E.PROVISIONAL): (_S.PROCEEDING, (_A.SEND,)),
    (_K.SERVER, _S.TRYING, _E.SUCCESS): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.TRYING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.PROCEEDING, _E.AGAIN): (_S.PROCEEDING, (_A.REPEAT,)),
    (_K.SERVER, _S.PROCEEDING, _E.SUCCESS): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.PROCEEDING, _E.FAILURE): (_S.COMPLETED, (_A.SEND,)),
    (_K.SERVER, _S.COMPLETED, _E.AGAIN): (_S.COMPLETED, (_A.REPEAT,)),
    (_K.SERVER, _S.COMPLETED, _E.EXPIRED): (_S.TERMINATED, ()),
}
"""What is not listed (a late provisional response, a second answer of ours) changes nothing."""


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
    """

    def __init__(self, timers: Timers | None = None) -> None:
        self._timers = timers or Timers()
        self._known: dict[tuple[str, ...], Transaction] = {}
        self._branches = itertools.count(1)
        self.outgoing: list[tuple[bytes, Address]] = []

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
        """Take back an INVITE of ours that nobody has answered yet (RFC 3261, section 9.1)."""
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
            self._known.pop(transaction.key, None)
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
