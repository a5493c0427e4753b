"""Transactions in virtual time: what is lost is repeated, what is repeated is answered again, and nothing is kept."""

from __future__ import annotations

import pytest

from voice_agent.channels.sip.message import Headers, Request, parse
from voice_agent.channels.sip.states import TIMINGS, TRANSITIONS, Kind, State
from voice_agent.channels.sip.transactions import Answered, Arrived, TimedOut, Transactions

FAR = ("192.0.2.1", 5060)


def request(method: str, branch: str = "z9hG4bK1") -> Request:
    lines = [
        ("via", f"SIP/2.0/UDP 192.0.2.1;branch={branch}"),
        ("from", "<sip:a@example.com>;tag=a"),
        ("to", "<sip:b@example.com>"),
        ("call-id", "c"),
        ("cseq", f"1 {method}"),
    ]
    return Request(Headers(lines), b"", method, "sip:b@example.com")


def sent(transactions: Transactions) -> list[str]:
    first = [data.split(b"\r\n")[0].decode() for data, _ in transactions.outgoing]
    transactions.outgoing.clear()
    return first


def run(transactions: Transactions, since: float, until_s: float) -> tuple[list[float], list[object]]:
    """Tick every 10 ms; return when something was sent, and what happened."""
    times, happened = [], []
    for step in range(int((until_s - since) * 100)):
        now = since + step / 100
        happened += list(transactions.tick(now))
        times += [round(now - since, 2)] * len(sent(transactions))
    return times, happened


def test_an_invite_of_ours_is_repeated_at_doubling_intervals_and_given_up_after_32_seconds() -> None:
    transactions = Transactions()
    transaction = transactions.request(request("INVITE"), FAR, 0.0, "192.0.2.9:5060", "x")
    assert len(sent(transactions)) == 1
    times, happened = run(transactions, 0.0, 40.0)
    assert times == [0.5, 1.5, 3.5, 7.5, 15.5, 31.5]
    assert happened == [TimedOut(transaction)]
    assert len(transactions) == 0


def test_other_requests_are_repeated_every_four_seconds_at_most() -> None:
    transactions = Transactions()
    transactions.request(request("BYE"), FAR, 0.0, "192.0.2.9:5060", "x")
    sent(transactions)
    times, _ = run(transactions, 0.0, 40.0)
    assert times == [0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5]


def test_a_success_is_repeated_until_it_is_acknowledged() -> None:
    transactions = Transactions()
    arrived = transactions.receive(request("INVITE"), FAR, 0.0)
    assert isinstance(arrived, Arrived)
    assert arrived.transaction is not None
    transactions.respond(arrived.transaction, arrived.request.respond(200, tag="b"), 0.0)
    sent(transactions)
    times, _ = run(transactions, 0.0, 2.0)
    assert times == [0.5, 1.5]
    transactions.acknowledged(arrived.transaction, 2.0)
    assert run(transactions, 2.0, 40.0) == ([], [])
    assert len(transactions) == 0


def test_a_success_that_is_never_acknowledged_is_told() -> None:
    transactions = Transactions()
    arrived = transactions.receive(request("INVITE"), FAR, 0.0)
    assert isinstance(arrived, Arrived)
    assert arrived.transaction is not None
    transactions.respond(arrived.transaction, arrived.request.respond(200, tag="b"), 0.0)
    _, happened = run(transactions, 0.0, 40.0)
    assert happened == [TimedOut(arrived.transaction)]


def test_a_refusal_is_repeated_until_it_is_acknowledged_by_the_transaction_itself() -> None:
    transactions = Transactions()
    arrived = transactions.receive(request("INVITE"), FAR, 0.0)
    assert isinstance(arrived, Arrived)
    assert arrived.transaction is not None
    transactions.respond(arrived.transaction, arrived.request.respond(486, tag="b"), 0.0)
    assert transactions.receive(request("ACK"), FAR, 0.2) is None
    sent(transactions)
    assert run(transactions, 0.2, 40.0) == ([], [])


def test_a_request_that_comes_again_gets_its_answer_again_and_nothing_else() -> None:
    transactions = Transactions()
    arrived = transactions.receive(request("BYE"), FAR, 0.0)
    assert isinstance(arrived, Arrived)
    assert arrived.transaction is not None
    assert transactions.receive(request("BYE"), FAR, 0.1) is None
    assert sent(transactions) == [], "there is no answer yet"
    transactions.respond(arrived.transaction, arrived.request.respond(200), 0.2)
    assert transactions.receive(request("BYE"), FAR, 0.3) is None
    assert sent(transactions) == ["SIP/2.0 200 OK"] * 2


def test_a_refused_call_of_ours_is_acknowledged_each_time_and_told_once() -> None:
    transactions = Transactions()
    transactions.request(request("INVITE"), FAR, 0.0, "192.0.2.9:5060", "x")
    invite = parse(transactions.outgoing[0][0])
    assert isinstance(invite, Request)
    transactions.outgoing.clear()
    told = [transactions.receive(invite.respond(486, tag="b"), FAR, 0.1 * i) for i in range(3)]
    assert [isinstance(t, Answered) for t in told] == [True, False, False]
    assert sent(transactions) == ["ACK sip:b@example.com SIP/2.0"] * 3


@pytest.mark.parametrize("kind", Kind)
def test_every_state_that_waits_has_an_end(kind: Kind) -> None:
    reached = {state for (of, _, _), (state, _) in TRANSITIONS.items() if of is kind} - {State.TERMINATED}
    # An INVITE rings for as long as whoever it concerns lets it.
    endless = {State.PROCEEDING, State.TRYING} if kind in (Kind.INVITE_SERVER, Kind.INVITE_CLIENT) else set()
    endless |= {State.PROCEEDING, State.TRYING} if kind is Kind.SERVER else set()
    for state in reached - endless:
        timing = TIMINGS[kind, state]
        assert timing.life_t1 or timing.life_t4


def test_a_call_of_ours_that_was_taken_back_is_over_although_the_far_end_says_no_more() -> None:
    transactions = Transactions()
    invite = transactions.request(request("INVITE"), FAR, 0.0, "192.0.2.9:5060", "x")
    transactions.receive(invite.request.respond(180, tag="b"), FAR, 0.1)
    assert run(transactions, 0.2, 100.0)[1] == [], "it may ring for long"
    transactions.cancel(invite, 100.0)
    _, happened = run(transactions, 100.0, 140.0)
    assert TimedOut(invite) in happened
    assert len(transactions) == 0


def test_whoever_owes_us_an_answer_is_known_until_the_request_is_over() -> None:
    transactions = Transactions()
    first = transactions.request(request("OPTIONS"), FAR, 0.0, "192.0.2.9:5060", "x")
    transactions.request(request("INVITE"), FAR, 0.0, "192.0.2.9:5060", "y")
    transactions.receive(first.request.respond(200, tag="b"), FAR, 0.1)
    run(transactions, 0.1, 20.0)
    assert transactions.asked == {FAR[0]: 1}
    transactions.receive(request("OPTIONS", "z9hG4bK2"), ("192.0.2.7", 5060), 20.0)
    run(transactions, 20.0, 80.0)
    assert not transactions.asked
