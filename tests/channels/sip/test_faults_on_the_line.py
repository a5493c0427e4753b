"""Far ends that do what the standard forbids, or what it allows and hardly anybody does: no call suffers from it."""

from __future__ import annotations

import asyncio
import hashlib
import re
import struct
from typing import Any

import pytest

from tests.channels.contract import ended, tone
from tests.channels.sip.conftest import Exchange, Open, setup
from tests.channels.sip.test_channel import called
from tests.support.lines import until
from tests.support.sip_caller import EVENTS, SipCaller
from voice_agent.channels.desk import CallRequest
from voice_agent.channels.outbound import DialOutcome
from voice_agent.channels.sip import ports as ports_module
from voice_agent.channels.sip.addresses import SipUri
from voice_agent.channels.sip.channel import SipChannel
from voice_agent.channels.sip.message import Headers, Response
from voice_agent.channels.sip.registration import _granted


def remembered(channel: SipChannel) -> int:
    """What the socket keeps of requests, ours and theirs."""
    agent: Any = channel._agent
    return len(agent._transactions) + len(agent._waiting) + len(agent._unacknowledged)


def key(phone: SipCaller, digit: str, timestamp: int, payload_type: int = 101) -> None:
    phone.send_rtp(struct.pack("!BBH", EVENTS.index(digit), 10, 160), payload_type, timestamp=timestamp, marker=True)


# Calls of ours


async def test_whoever_answers_a_call_that_is_taken_back_is_told_that_nobody_is_there(exchange: Exchange) -> None:
    phone = await called(exchange, 180)
    asked = CallRequest("conversation", "sip")
    result = await exchange.channel.dial(f"sip:them@127.0.0.1:{phone.port}", asked, ring_timeout_s=0.1)
    assert result.outcome is DialOutcome.NO_ANSWER
    invite = next(m for m in phone.messages if m.first.startswith("INVITE"))
    phone.ring = (200,)
    for _ in range(3):
        phone.answer_invite(invite)
    await until(lambda: phone.over)
    assert any(m.first.startswith("ACK") for m in phone.messages)
    await until(lambda: remembered(exchange.channel) == 0)
    byes = {m.header("Via") for m in phone.messages if m.first.startswith("BYE")}
    assert len(byes) == 1, "once, however often it is answered"


@pytest.mark.parametrize("ring", [(180,), (180, 200), (486,), ()])
async def test_a_call_of_ours_leaves_nothing_behind_however_it_ends(exchange: Exchange, ring: tuple[int, ...]) -> None:
    phone = await called(exchange, *ring)
    asked = CallRequest("conversation", "sip")
    result = await exchange.channel.dial(f"sip:them@127.0.0.1:{phone.port}", asked, ring_timeout_s=0.1)
    if result.outcome is DialOutcome.ANSWERED:
        await (await exchange.desk.next_line()).wire.hang_up("completed")
    await until(lambda: remembered(exchange.channel) == 0)
    assert exchange.channel.legs == 0


@pytest.mark.parametrize("to", ["sip:them@127.0.0.1:99999", "sip:them@127.0.0.1:"])
async def test_an_address_that_cannot_be_is_said_to_be_bad(
    exchange: Exchange, to: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = await exchange.channel.dial(to, CallRequest("conversation", "sip"))
    assert result.outcome is DialOutcome.BAD_ADDRESS
    assert "Traceback" not in caplog.text


async def test_a_host_that_is_no_name_is_not_reached(exchange: Exchange, caplog: pytest.LogCaptureFixture) -> None:
    result = await exchange.channel.dial("sip:them@a..b", CallRequest("conversation", "sip"))
    assert result.outcome is DialOutcome.UNREACHABLE
    assert "Traceback" not in caplog.text


def test_what_a_registrar_says_of_other_devices_counts_for_them() -> None:
    def answered(*more: tuple[str, str]) -> Response:
        return Response(Headers(more), b"", 200)

    us = SipUri.parse("sip:agent@192.0.2.1:5060")
    other, ours = "<sip:4711@192.0.2.7>;expires=7200", "<sip:agent@192.0.2.1:5060>;expires=60"
    assert _granted(answered(("contact", other), ("contact", ours)), 300, us) == 60
    assert _granted(answered(("contact", other), ("expires", "120")), 300, us) == 120
    assert _granted(answered(("contact", ours.replace("60>", "60>").replace("=60", "=99999999"))), 300, us) == 300
    assert _granted(answered(("contact", "rubbish <;expires=1")), 300, us) == 300


# Calls of theirs


async def test_a_caller_who_gives_up_while_the_port_is_opened_leaves_none_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[asyncio.DatagramTransport] = []
    loop = asyncio.get_running_loop()
    original = loop.create_datagram_endpoint

    async def slowly(*args: Any, **more: Any) -> Any:
        made = await original(*args, **more)
        opened.append(made[0])
        if len(opened) == 2:
            await asyncio.sleep(5)
        return made

    monkeypatch.setattr(loop, "create_datagram_endpoint", slowly)
    opening = asyncio.create_task(ports_module.MediaPorts("127.0.0.1", (22400, 22401)).open(lambda *_: None))
    await until(lambda: len(opened) == 2)
    opening.cancel()
    await asyncio.wait({opening})
    assert opened[0].is_closing()
    opened[1].close()
    await asyncio.sleep(0)
    monkeypatch.undo()
    again = await ports_module.MediaPorts("127.0.0.1", (22400, 22401)).open(lambda *_: None)
    assert again.number == 22400
    again.close()


async def test_changes_that_overtake_their_acknowledgements_end_no_call(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    for direction in ("sendonly", "sendrecv", "sendonly", "sendrecv"):
        assert (await phone.ask("INVITE", body=phone.sdp(direction))).status == 200
    phone.send(phone.write("ACK", sequence=phone.sequence))  # of the last; those of the others were lost
    await until(lambda: not exchange.channel._agent._unacknowledged)
    assert not line.ended.done()
    assert line.inputs.holds == [True, False, True, False]
    await until(lambda: remembered(exchange.channel) == 0)
    assert not line.ended.done()


async def test_an_offer_of_ours_is_answered_by_its_own_acknowledgement(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    assert (await phone.ask("INVITE")).status == 200  # without a description: the answer comes with the ACK
    assert (await phone.ask("INVITE", body=phone.sdp())).status == 200
    phone.send(phone.write("ACK", sequence=phone.sequence))
    await until(lambda: not exchange.channel._agent._unacknowledged)
    assert not line.ended.done()


async def test_a_storm_in_one_call_leaves_room_for_the_others(exchange: Exchange) -> None:
    phone, other = await exchange.phone(), await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    for _ in range(300):
        phone.send(phone.write("OPTIONS"))
    await until(lambda: phone.messages[-1].status == 503)
    assert remembered(exchange.channel) < 60
    assert (await other.invite()).status == 200
    await phone.hang_up()
    assert await ended(line) == "hang_up"


async def test_a_proof_of_letters_that_no_digest_has_is_refused_and_not_remembered(
    open_exchange: Open, caplog: pytest.LogCaptureFixture
) -> None:
    configured = setup(passwords={"desk": "secret"})
    exchange = await open_exchange(type(configured)(**{**vars_of(configured), "networks": ()}))
    phone = await exchange.phone()
    response = await phone.ask("INVITE", body=phone.sdp())
    nonce = re.search(r'nonce="([^"]*)"', response.header("WWW-Authenticate"))
    assert nonce is not None
    uri = f"sip:agent@127.0.0.1:{exchange.port}"
    proof = (
        f'Authorization: Digest username="desk", realm="voice-agent", nonce="{nonce[1]}", uri="{uri}", '
        f'response="{hashlib.sha256(b"x").hexdigest()[:-1]}é", algorithm=SHA-256, cnonce="a", qop=auth, nc=00000001'
    )
    assert (await phone.ask("INVITE", proof, body=phone.sdp())).status == 401
    assert remembered(exchange.channel) == 0
    assert "Traceback" not in caplog.text


async def test_a_request_that_fails_in_our_hands_is_answered_and_not_remembered(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(exchange.channel, "_invited", broken)
    assert (await (await exchange.phone()).invite()).status == 500
    assert remembered(exchange.channel) == 0


def vars_of(made: Any) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__dataclass_fields__}


# Media


async def test_a_stranger_at_the_media_port_silences_nobody(exchange: Exchange) -> None:
    phone, stranger = await exchange.phone(), await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    await phone.speak(tone(0.1))
    await until(lambda: len(line.inputs.heard) > 3000)
    stranger._media_peer = phone._media_peer
    for _ in range(8):
        for _ in range(50):
            stranger.send_rtp(b"\x00" * 160)
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    before = len(line.inputs.heard)
    await phone.speak(tone(0.1))
    await until(lambda: len(line.inputs.heard) > before + 2000)


async def test_numbers_of_codec_and_keys_that_change_in_the_call_are_followed(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    key(phone, "1", 1000)
    await until(lambda: line.inputs.keys == ["1"])
    moved = phone.sdp().replace("0 101", "0 96").replace(":101 ", ":96 ")
    assert (await phone.invite(body=moved)).status == 200
    key(phone, "2", 3000, 96)
    await until(lambda: line.inputs.keys == ["1", "2"])
    pressing = asyncio.create_task(line.wire.send_digits("5"))  # type: ignore[attr-defined]
    await pressing
    await until(lambda: any(packet[1] & 0x7F == 96 for _, packet in phone.packets))


async def test_keys_count_once_without_their_ends_late_and_after_the_time_jumps_back(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    key(phone, "1", 0xFFFFFF00)  # its end is lost
    key(phone, "2", 0xFFFFFF00 + 800)
    key(phone, "2", 0xFFFFFF00 + 800)
    key(phone, "3", 50)  # the clock was set back, and the key after it is one all the same
    phone._rtp_sequence -= 3
    key(phone, "2", 0xFFFFFF00 + 800)  # a packet that comes late
    phone._rtp_sequence += 3
    key(phone, "4", 20)
    await until(lambda: "4" in line.inputs.keys)
    assert line.inputs.keys == ["1", "2", "3", "4"]
