"""Calls by SIP on real sockets, with a telephone that does on demand what real ones do rarely."""

from __future__ import annotations

import asyncio
import re
import struct
from itertools import pairwise

import pytest

from tests.channels.contract import ended, sounding, speak, tone
from tests.channels.sip.conftest import Exchange, Open, setup
from tests.support.lines import until
from tests.support.sip_caller import SipCaller, SipMessage
from voice_agent.channels.desk import CallRefused, CallRequest
from voice_agent.channels.outbound import DialOutcome
from voice_agent.channels.sip import answering
from voice_agent.channels.sip.agent import Credentials
from voice_agent.transfers import TransferReason, TransferTarget


async def test_the_callers_number_and_the_called_one_go_with_the_call_and_into_no_log(
    exchange: Exchange, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    assert line.request.facts == {"caller_number": "+15550123", "called_number": "+15550100"}
    assert "5550123" not in caplog.text + repr(line.request)


@pytest.mark.parametrize(
    ("code", "status", "retries"),
    [("at_capacity", 486, True), ("draining", 503, True), ("not_ready", 503, True), ("channel_off", 480, False)],
)
async def test_a_call_that_cannot_be_taken_is_told_so_and_when_to_try_again(
    exchange: Exchange, code: str, status: int, retries: bool
) -> None:
    exchange.desk.refuse = CallRefused(code, "Not now.", retry=retries)
    response = await (await exchange.phone()).invite()
    assert response.status == status
    assert bool(response.header("Retry-After")) is retries


async def test_a_call_from_elsewhere_is_refused_before_anybody_hears_of_it(open_exchange: Open) -> None:
    configured = setup()
    strangers = type(configured)(rtp_ports=(22200, 22399), networks=(), timers=configured.timers)
    exchange = await open_exchange(strangers)
    assert (await (await exchange.phone()).invite()).status == 403
    assert exchange.desk.lines == []


async def test_options_are_answered_as_a_sign_of_life(exchange: Exchange) -> None:
    response = await (await exchange.phone()).ask("OPTIONS")
    assert response.status == 200
    assert "INVITE" in response.header("Allow")


async def test_a_caller_who_gives_up_before_the_answer_makes_no_call(exchange: Exchange) -> None:
    async def never(request: CallRequest, wire: object) -> None:
        await asyncio.get_running_loop().create_future()

    exchange.desk.take = never  # type: ignore[method-assign,assignment]
    phone = await exchange.phone()
    phone.send(phone.write("INVITE", body=phone.sdp(), branch="z9hG4bKcancelled"))
    await phone.response(final=False)
    phone.send(phone.write("CANCEL", sequence=1, branch="z9hG4bKcancelled"))
    assert (await phone.response("CANCEL")).status == 200
    assert (await phone.response("INVITE")).status == 487
    await until(lambda: exchange.channel.legs == 0)


async def test_a_caller_who_never_acknowledges_is_hung_up_on_and_forgotten(exchange: Exchange) -> None:
    phone = await exchange.phone()
    phone.answers_bye = False
    phone.send(phone.write("INVITE", body=phone.sdp()))
    await phone.response()
    await until(lambda: phone.over)
    assert exchange.desk.lines == [], "no call without a caller"
    answers = [m for m in phone.messages if m.status == 200 and m.method == "INVITE"]
    assert len(answers) > 4, "the answer is repeated"
    await until(lambda: exchange.channel.legs == 0)


async def test_a_caller_who_is_heard_is_answered_without_an_acknowledgement(exchange: Exchange) -> None:
    phone = await exchange.phone()
    phone.send(phone.write("INVITE", body=phone.sdp()))
    response = await phone.response()
    phone._media_peer = ("127.0.0.1", int(response.body.partition("m=audio ")[2].split()[0]))
    phone.send_rtp(b"\xff" * 160)
    line = await exchange.desk.next_line()
    assert not line.ended.done()


async def test_a_caller_who_never_confirms_our_hang_up_holds_nothing_back(exchange: Exchange) -> None:
    phone = await exchange.phone()
    phone.answers_bye = False
    await phone.invite()
    line = await exchange.desk.next_line()
    await line.wire.hang_up("completed")
    assert await ended(line) == "closed"
    await until(lambda: exchange.channel.legs == 0)


async def test_a_repeated_request_is_answered_once_more_and_acted_on_once(exchange: Exchange) -> None:
    phone = await exchange.phone()
    data = phone.write("INVITE", body=phone.sdp())
    for _ in range(3):
        phone.send(data)
    phone.acknowledge(await phone.response())
    await exchange.desk.next_line()
    bye = phone.write("BYE")
    for _ in range(3):
        phone.send(bye)
    await until(lambda: len([m for m in phone.messages if m.method == "BYE" and m.status == 200]) == 3)
    assert len(exchange.desk.lines) == 1


async def test_on_hold_nothing_is_sent_and_the_call_knows_of_it(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    response = await phone.invite(body=phone.sdp("sendonly"))
    assert response.status == 200
    assert "a=recvonly" in response.body
    await until(lambda: line.inputs.holds == [True])
    await asyncio.sleep(0.05)
    before = len(phone.packets)
    speak(line, tone(0.1))
    await asyncio.sleep(0.15)
    assert len(phone.packets) == before
    response = await phone.invite(body=phone.sdp())
    assert "a=sendrecv" in response.body
    await until(lambda: line.inputs.holds == [True, False])
    await until(lambda: len(phone.packets) > before + 3)


async def test_silence_is_sent_all_the_time_so_that_the_line_is_kept(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    await exchange.desk.next_line()
    await until(lambda: len(phone.packets) > 20)
    stamps = [struct.unpack("!HI", packet[2:8]) for _, packet in phone.packets[:20]]
    steps = {((b[0] - a[0]) & 0xFFFF, (b[1] - a[1]) & 0xFFFFFFFF) for a, b in pairwise(stamps)}
    assert {number for number, _ in steps} == {1}
    assert all(stamp % 160 == 0 for _, stamp in steps), "timestamps stay on the 20 ms grid"


async def test_media_of_anybody_else_is_not_heard(exchange: Exchange) -> None:
    phone, other = await exchange.phone(), await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    await phone.speak(tone(0.1))
    await until(lambda: len(line.inputs.heard) > 3000)
    heard = len(line.inputs.heard)
    other._media_peer = phone._media_peer
    await other.speak(tone(0.3))
    await asyncio.sleep(0.05)
    assert len(line.inputs.heard) == heard


async def test_an_invitation_without_a_description_gets_our_offer(exchange: Exchange) -> None:
    phone = await exchange.phone()
    phone.send(phone.write("INVITE"))
    response = await phone.response()
    assert "m=audio" in response.body
    assert "PCMU/8000" in response.body
    phone.to_tag = response.header("To").partition(";tag=")[2]
    phone._media_peer = ("127.0.0.1", int(response.body.partition("m=audio ")[2].split()[0]))
    phone.send(phone.write("ACK", body=phone.sdp(), sequence=phone.sequence))
    line = await exchange.desk.next_line()
    await phone.speak(tone(0.2))
    await until(lambda: len(sounding(bytes(line.inputs.heard))) > 5000)


async def test_encrypted_media_which_we_do_not_speak_is_refused(exchange: Exchange) -> None:
    phone = await exchange.phone()
    body = phone.sdp().replace("RTP/AVP", "RTP/SAVP")
    assert (await phone.invite(body=body)).status == 488


async def test_a_key_told_by_the_signalling_counts_too(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    phone.send(phone.write("INFO", "Content-Type: application/dtmf-relay", body="Signal=7\r\nDuration=160\r\n"))
    await until(lambda: line.inputs.keys == ["7"])


@pytest.mark.parametrize(
    ("fragment", "reason"),
    [
        ("SIP/2.0 200 OK", TransferReason.COMPLETED),
        ("SIP/2.0 486 Busy Here", TransferReason.BUSY),
        ("SIP/2.0 480 Temporarily Unavailable", TransferReason.NO_ANSWER),
        ("SIP/2.0 603 Decline", TransferReason.DECLINED),
        ("SIP/2.0 404 Not Found", TransferReason.UNREACHABLE),
        ("SIP/2.0 502 Bad Gateway", TransferReason.TRUNK_ERROR),
    ],
)
async def test_what_becomes_of_a_transfer_has_a_reason(
    exchange: Exchange, fragment: str, reason: TransferReason
) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    referred: list[str] = []

    def on_request(message: SipMessage) -> int | None:
        if message.method != "REFER":
            return None
        referred.append(message.header("Refer-To"))
        asyncio.get_running_loop().call_later(0.02, notify, "SIP/2.0 180 Ringing")
        asyncio.get_running_loop().call_later(0.04, notify, fragment)
        return 202

    def notify(told: str) -> None:
        more = ("Event: refer", "Subscription-State: active")
        data = phone.write("NOTIFY", *more, body=told + "\r\n").replace(b"application/sdp", b"message/sipfrag")
        phone.send(data)

    phone.on_request = on_request
    result = await line.wire.transfer(TransferTarget("desk", "+15550111", timeout_s=3))  # type: ignore[attr-defined]
    assert result.reason is reason
    assert referred == [f"<sip:+15550111@127.0.0.1:{phone.port}>"]


async def test_a_far_end_that_cannot_transfer_says_so(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    phone.on_request = lambda message: 405 if message.method == "REFER" else None
    result = await line.wire.transfer(TransferTarget("desk", "sip:desk@example.com"))  # type: ignore[attr-defined]
    assert result.reason is TransferReason.NOT_SUPPORTED


async def test_a_transfer_that_only_rings_is_given_up_in_time(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    phone.on_request = lambda message: 202 if message.method == "REFER" else None
    result = await line.wire.transfer(TransferTarget("desk", "sip:d@example.com", timeout_s=0.1))  # type: ignore[attr-defined]
    assert result.reason is TransferReason.TIMEOUT


class Telephone(SipCaller):
    """One that is called."""

    ring: tuple[int, ...] = (180, 200)

    def answer_invite(self, request: SipMessage) -> None:
        port = re.search(r"m=audio (\d+)", request.body)
        assert port is not None
        self._media_peer = ("127.0.0.1", int(port[1]))
        kept = [line for line in request.lines if line.split(":")[0].lower() in ("via", "from", "call-id", "cseq")]
        for status in self.ring:
            lines = [f"SIP/2.0 {status} Fine", *kept, f"To: {request.header('To')};tag=them"]
            body = self.sdp() if status == 200 else ""
            lines += [f"Contact: <sip:them@127.0.0.1:{self.port}>", f"Content-Length: {len(body)}", "", body]
            self.send("\r\n".join(lines).encode())


async def called(exchange: Exchange, *ring: int) -> Telephone:
    phone = await Telephone.open(exchange.port)
    assert isinstance(phone, Telephone)
    exchange.callers.append(phone)
    phone.ring = ring

    def on_request(message: SipMessage) -> int | None:
        if message.first.startswith("INVITE"):
            phone.answer_invite(message)
        return 200 if message.first.startswith("CANCEL") else None

    phone.on_request = on_request
    return phone


async def test_a_call_of_ours_that_is_answered_is_a_call_like_any_other(exchange: Exchange) -> None:
    phone = await called(exchange, 180, 200)
    result = await exchange.channel.dial(f"sip:them@127.0.0.1:{phone.port}", CallRequest("conversation", "sip"))
    assert result.outcome is DialOutcome.ANSWERED
    assert result.call_id
    line = await exchange.desk.next_line()
    speak(line, tone(0.2))
    await until(lambda: len(phone.audio) > 5000)
    await line.wire.hang_up("completed")
    await until(lambda: phone.over)


async def test_a_machine_that_answers_our_call_is_told_from_a_person(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What this telephone says comes faster than it would be spoken.
    monkeypatch.setattr(answering, "MONOLOGUE_S", 0.1)
    monkeypatch.setattr(answering, "BEGINS_S", 30.0)
    phone = await called(exchange, 200)
    result = await exchange.channel.dial(f"sip:them@127.0.0.1:{phone.port}", CallRequest("conversation", "sip"))
    await exchange.desk.next_line()
    assert exchange.channel.answered_by(result.call_id) == ""
    await phone.speak(tone(2.0))
    await until(lambda: exchange.channel.answered_by(result.call_id) == "machine")
    assert exchange.desk.notes == [("conversation", "answered_by", {"who": "machine"})]


@pytest.mark.parametrize(
    ("ring", "outcome"),
    [
        ((180, 486), DialOutcome.BUSY),
        ((180, 480), DialOutcome.NO_ANSWER),
        ((603,), DialOutcome.DECLINED),
        ((404,), DialOutcome.UNREACHABLE),
        ((500,), DialOutcome.TRUNK_ERROR),
        ((180,), DialOutcome.NO_ANSWER),
        ((), DialOutcome.UNREACHABLE),
    ],
)
async def test_a_call_of_ours_that_fails_says_why(
    exchange: Exchange, ring: tuple[int, ...], outcome: DialOutcome
) -> None:
    phone = await called(exchange, *ring)
    asked = CallRequest("conversation", "sip")
    limit_s = 0.3 if ring == (180,) else 5.0
    result = await exchange.channel.dial(f"sip:them@127.0.0.1:{phone.port}", asked, ring_timeout_s=limit_s)
    assert result.outcome is outcome
    assert exchange.desk.lines == []
    if ring == (180,):
        await until(lambda: any(m.first.startswith("CANCEL") for m in phone.messages))
    await until(lambda: exchange.channel.legs == 0)


async def test_we_register_prove_who_we_are_take_calls_of_the_exchange_and_withdraw(open_exchange: Open) -> None:
    registrar = await SipCaller.open(0)
    seen: list[SipMessage] = []

    def on_request(message: SipMessage) -> int | None:
        seen.append(message)
        if message.header("Authorization"):
            return 200
        kept = [
            line for line in message.lines if line.split(":")[0].lower() in ("via", "from", "to", "call-id", "cseq")
        ]
        ask = 'WWW-Authenticate: Digest realm="pbx", nonce="n1", qop="auth", algorithm=MD5'
        registrar.send("\r\n".join(["SIP/2.0 401 No", *kept, ask, "Content-Length: 0", "", ""]).encode())
        return None

    registrar.on_request = on_request
    configured = setup()
    configured = type(configured)(
        rtp_ports=(22200, 22399),
        registrar=f"127.0.0.1:{registrar.port}",
        credentials=Credentials("agent", "secret", "pbx.example.com"),
        timers=configured.timers,
    )
    exchange = await open_exchange(configured)
    registrar.server = ("127.0.0.1", exchange.port)
    await until(lambda: any(m.header("Authorization") for m in seen))
    proof = next(m for m in seen if m.header("Authorization"))
    assert proof.first == "REGISTER sip:pbx.example.com SIP/2.0"
    assert 'username="agent"' in proof.header("Authorization")
    phone = await exchange.phone()
    assert (await phone.invite()).status == 200, "calls come from the exchange's address"
    await exchange.desk.next_line()
    exchange.serving.cancel()
    await asyncio.wait({exchange.serving}, timeout=3)
    assert seen[-1].header("Expires") == "0"
    await registrar.close()
