"""One address cannot use up what is read of another, and strangers cannot use up what is read of those we know."""

from __future__ import annotations

import asyncio
from itertools import count

from tests.channels.sip.conftest import Open
from tests.support.lines import until
from tests.support.virtual_time import virtual_time
from voice_agent.channels.sip.agent import UserAgent
from voice_agent.channels.sip.budget import KNOWN, MAX_SOURCES, STRANGER, STRANGERS, MessageBudget
from voice_agent.channels.sip.message import Request, parse
from voice_agent.channels.sip.ports import bound
from voice_agent.channels.sip.setup import SipSetup

TRUNK, PHONE = "192.0.2.1", "203.0.113.5"


def made() -> MessageBudget:
    return MessageBudget(lambda host: host == TRUNK, 0.0)


def read(budget: MessageBudget, host: str, now: float, sent: int = 5000) -> int:
    return sum(budget.take(host, now) for _ in range(sent))


def flood(budget: MessageBudget, now: float) -> int:
    """Forged addresses by the thousand."""
    return sum(budget.take(f"10.{n >> 8}.{n & 255}.1", now) for n in range(5 * MAX_SOURCES))


def test_what_one_stranger_sends_too_much_takes_nothing_from_another() -> None:
    budget = made()
    assert read(budget, "198.51.100.1", 0.0) == STRANGER[0]
    assert read(budget, "198.51.100.2", 0.0) == STRANGER[0]
    assert read(budget, "198.51.100.1", 0.5) == STRANGER[1] / 2


def test_all_strangers_together_are_read_no_more_than_so_many() -> None:
    budget = made()
    assert flood(budget, 0.0) == STRANGERS[0]
    assert flood(budget, 1.0) == STRANGERS[1]


def test_strangers_take_nothing_from_those_who_are_known() -> None:
    budget = made()
    budget.hold("call", PHONE)
    flood(budget, 0.0)
    assert read(budget, TRUNK, 0.0) == KNOWN[0]
    assert read(budget, PHONE, 0.0) == KNOWN[0]
    # nor do those take anything from strangers
    assert flood(budget, 1.0) == STRANGERS[1]


def test_a_peer_is_known_until_the_last_of_its_calls_is_over() -> None:
    budget = made()
    budget.hold("one", PHONE, PHONE)
    budget.hold("two", PHONE)
    budget.release("one")
    budget.release("one")
    flood(budget, 0.0)
    assert budget.take(PHONE, 0.0)
    budget.release("two")
    assert not budget.take(PHONE, 0.0)


def test_no_more_addresses_are_kept_than_the_table_holds() -> None:
    everyone = MessageBudget(lambda host: True, 0.0)
    flood(everyone, 0.0)
    strangers = made()
    flood(strangers, 0.0)
    assert len(everyone._known) == len(strangers._strangers) == MAX_SOURCES
    assert "10.0.0.1" not in strangers._strangers  # the oldest


def test_a_network_of_ipv6_is_one_stranger_and_ipv4_in_ipv6_is_not() -> None:
    budget = made()
    assert sum(budget.take(f"2001:db8::{n:x}", 0.0) for n in range(300)) == STRANGER[0]
    assert sum(budget.take(f"::ffff:198.51.100.{n}", 0.0) for n in range(200)) == 200


def wanted(method: str, branch: int) -> bytes:
    lines = [
        f"{method} sip:agent@192.0.2.9 SIP/2.0",
        f"Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK{branch}",
        "From: <sip:a@example.com>;tag=a",
        "To: <sip:b@example.com>",
        f"Call-ID: c{branch}",
        f"CSeq: 1 {method}",
        "Content-Length: 0",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


@virtual_time
async def test_a_port_that_strangers_flood_reads_the_trunk_and_whoever_owes_it_an_answer() -> None:
    heard: list[str] = []
    agent = UserAgent(lambda request, transaction, source: heard.append(source[0]), lambda host: host == TRUNK)
    await agent.open(bound("127.0.0.1", 0))
    branches = count()
    for n in range(1000):
        agent.datagram_received(b"nothing", (f"198.51.100.{n % 250}", 5060))
    for source in ("198.51.100.1", "198.51.100.251", TRUNK):
        agent.datagram_received(wanted("OPTIONS", next(branches)), (source, 5060))
    assert heard == [TRUNK]
    ours = wanted("OPTIONS", next(branches))
    asked = agent.start(parsed(ours), ("127.0.0.5", 9850), lambda response: heard.append("answered"))
    agent.datagram_received(bytes(asked.request.respond(200, tag="b")), ("127.0.0.5", 9850))
    assert heard == [TRUNK, "answered"]
    agent.close()


def parsed(data: bytes) -> Request:
    message = parse(data)
    assert isinstance(message, Request)
    return message


async def test_a_running_calls_far_end_is_heard_whatever_strangers_send(open_exchange: Open) -> None:
    exchange = await open_exchange(SipSetup(rtp_ports=(22200, 22399)))
    exchange.channel.door.exchanges = frozenset({"127.0.0.1"})
    phone = await exchange.phone()
    assert (await phone.invite()).status == 200
    line = await exchange.desk.next_line()
    exchange.channel.door.exchanges = frozenset()  # from here on it is known by its call alone

    def strangers() -> None:
        for n in range(1000):
            exchange.channel._agent.datagram_received(b"nothing", (f"198.51.100.{n % 250}", 5060))

    strangers()
    # Read in the same step: no time passes in which the strangers' bucket fills again.
    exchange.channel._agent.datagram_received(phone.write("BYE"), ("127.0.0.1", phone.port))
    assert (await phone.response("BYE")).status == 200
    await until(lambda: line.ended.done())
    await until(lambda: exchange.channel.legs == 0)
    now = asyncio.get_running_loop().time()
    strangers()
    assert not exchange.channel._agent.budget.take("127.0.0.1", now)
