"""Whatever arrives at the ports: no crash, nothing kept, no other call disturbed."""

from __future__ import annotations

import asyncio
import random
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.channels.contract import sounding, tone
from tests.channels.sip.conftest import Exchange
from tests.support.lines import until
from voice_agent.channels.sip import rtp, sdp
from voice_agent.channels.sip.addresses import BadSip, NameAddress, SipUri, Via, split_list
from voice_agent.channels.sip.dialog import Dialog
from voice_agent.channels.sip.message import Request, Response, parse
from voice_agent.channels.sip.transactions import Transactions

INVITE = (
    b"INVITE sip:agent@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2:5061;branch=z9hG4bK1;rport\r\n"
    b'From: "A \\"B\\" <x>" <sip:+15550123@192.0.2.2>;tag=a\r\nTo: <sip:agent@192.0.2.1>\r\nCall-ID: c\r\n'
    b"CSeq: 1 INVITE\r\nContact: <sip:a@192.0.2.2:5061;transport=udp>\r\n"
    b"Record-Route: <sip:192.0.2.3;lr>, <sip:p;lr>\r\n"
    b"Content-Type: application/sdp\r\n\r\n"
)
SDP = (
    b"v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\nm=audio 4000 RTP/AVP 9 0 8 101\r\n"
    b"a=rtpmap:101 telephone-event/8000\r\na=sendrecv\r\n"
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A message with bytes changed, cut out, doubled or put in."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 8))):
        at, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=3))
            case 1:
                del data[at : min(end, at + 20)]
            case 2:
                data[at:at] = data[at : min(end, at + 60)]
            case _:
                data[at:at] = draw(
                    st.sampled_from([b"\r\n", b";", b"<", b'"', b"\\", b",", b":", b"\0", b"%", b"=" * 50])
                )
    return bytes(data)


@settings(max_examples=400, deadline=None)
@given(st.one_of(damaged(INVITE + SDP), st.binary(max_size=400)))
def test_a_damaged_message_is_understood_or_refused(data: bytes) -> None:
    try:
        message = parse(data)
        transactions = Transactions()
        transactions.receive(message, ("192.0.2.2", 5061), 0.0)
        if isinstance(message, Request):
            Dialog.of_invite(message, "tag").request("BYE")
            assert parse(bytes(message.respond(200, tag="t"))).call_id == message.call_id
    except BadSip as refused:
        assert str(refused)


@settings(max_examples=200, deadline=None)
@given(st.one_of(damaged(SDP), st.binary(max_size=300)))
def test_a_damaged_description_is_understood_or_refused(data: bytes) -> None:
    try:
        agreed = sdp.agree(sdp.parse(data), ("g722", "pcmu", "pcma"))
    except sdp.BadSdp:
        return
    answered = sdp.parse(sdp.answer(agreed, "192.0.2.9", 5000, (1, 1)))
    assert sdp.agree(answered, ("g722", "pcmu", "pcma")).codec is agreed.codec


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_in_a_header_is_an_address_or_refused(text: str) -> None:
    split_list(text)
    for kind in (SipUri, NameAddress, Via):
        try:
            made = kind.parse(text)  # type: ignore[attr-defined]
        except BadSip:
            continue
        assert "\n" not in str(made).strip() or "\n" in text


@given(st.binary(max_size=100))
def test_any_datagram_is_a_packet_or_nothing(data: bytes) -> None:
    packet = rtp.parse(data)
    if packet is not None:
        assert packet.payload
        rtp.event_of(packet.payload)
        assert rtp.parse(bytes(packet)) == packet


def test_a_value_with_a_line_break_never_becomes_a_header() -> None:
    message = parse(INVITE)
    assert isinstance(message, Request)
    response: Response = message.respond(200, ("reason", "a\r\nContact: <sip:evil@example.com>"))
    try:
        bytes(response)
    except ValueError:
        return
    raise AssertionError("written all the same")


async def test_rubbish_at_every_port_disturbs_no_call(exchange: Exchange) -> None:
    phone, vandal = await exchange.phone(), await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    dice = random.Random(7)
    media = phone._media_peer
    assert media is not None

    async def rubbish() -> None:
        template = vandal.write("INVITE", body=vandal.sdp())
        for _ in range(300):
            data = bytearray(template)
            for _ in range(dice.randint(1, 30)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            vandal.send(bytes(data))
            vandal.rtp.sendto(dice.randbytes(dice.randint(1, 200)), media)
            # The telephone itself sends nonsense too, with numbers that jump.
            header = struct.pack(
                "!BBHII", 0x80, dice.choice([0, 13, 101, 77]), dice.randrange(65536), 0, dice.randrange(99)
            )
            phone.rtp.sendto(header + dice.randbytes(dice.randint(0, 40)), media)
            await asyncio.sleep(0.001)

    await asyncio.gather(rubbish(), asyncio.sleep(0))
    await asyncio.sleep(0.1)
    del line.inputs.heard[:]
    await phone.speak(tone(0.3))
    await until(lambda: len(sounding(bytes(line.inputs.heard))) > 8000)
    assert not line.ended.done()
    assert exchange.channel.legs < 50
