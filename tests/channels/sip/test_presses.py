"""Keys that the agent presses, packet by packet as RFC 4733 has them, and a far end that has agreed to none."""

from __future__ import annotations

import asyncio
import itertools
import struct

from tests.channels.contract import ended
from tests.channels.sip.conftest import Exchange
from tests.support.lines import until
from voice_agent.audio.frames import SILENCE
from voice_agent.call.wire import PressingWire
from voice_agent.channels.sip import rtp
from voice_agent.channels.sip.media import MediaSender
from voice_agent.channels.sip.presses import Pressing, presses
from voice_agent.channels.sip.sdp import CODECS, Agreed
from voice_agent.digits import DIGITS_SENT, DigitsReason, DigitsResult, seconds_of


def packets(digits: str) -> list[rtp.Packet]:
    sender = MediaSender(Agreed(CODECS["pcmu"], 0, 101, "127.0.0.1", 4000))
    sent = [sender.packet(SILENCE, 0, first=True)]
    sent += [sender.packet(None, 0, first=False) if p is None else sender.press(p, 0) for p in presses(digits)]
    sent.append(sender.packet(SILENCE, 0, first=False))
    read = [rtp.parse(data) for data in sent]
    assert None not in read
    return [packet for packet in read if packet is not None]


def test_all_packets_of_a_key_have_the_time_of_its_first_and_its_end_comes_three_times() -> None:
    sent = packets("5#")
    keys = [p for p in sent if p.payload_type == 101]
    groups = [[p for p in keys if p.timestamp == at] for at in dict.fromkeys(p.timestamp for p in keys)]
    assert [rtp.event_of(group[0].payload)[0] for group in groups] == ["5", "#"]  # type: ignore[index]
    for group in groups:
        told = [struct.unpack("!BBH", p.payload) for p in group]
        assert [duration for _, _, duration in told] == [160, 320, 480, 640, 800, 800, 800, 800]
        assert [bool(flags & 0x80) for _, flags, _ in told] == [False] * 5 + [True] * 3
        assert [p.marker for p in group] == [True] + [False] * 7


def test_numbers_and_time_go_on_through_the_keys_without_a_gap() -> None:
    sent = packets("1w2")
    assert {(b.sequence - a.sequence) & 0xFFFF for a, b in itertools.pairwise(sent)} == {1}
    sound = [p for p in sent if p.payload_type == 0]
    assert (sound[-1].timestamp - sound[0].timestamp) & 0xFFFFFFFF == 160 * (len(sent) - 1)
    assert round((len(sent) - 2) * 0.02, 6) == round(seconds_of("1w2"), 6)
    held = [p.timestamp for p in sent if p.marker and p.payload_type == 101]
    assert (held[1] - held[0]) & 0xFFFFFFFF == round((0.2 + 0.5) * 8000)


def test_the_end_is_told_once() -> None:
    done: list[DigitsResult] = []
    pressing = Pressing("1", done.append)
    taken = [pressing.take() for _ in range(15)]
    assert (len([one for one in taken if one]), done) == (8, [DIGITS_SENT])


async def test_a_far_end_that_agreed_to_no_events_is_left_to_tones_and_one_on_hold_to_nothing(
    exchange: Exchange,
) -> None:
    phone = await exchange.phone()
    plain = phone.sdp().replace(" 101\r\n", "\r\n").replace("a=rtpmap:101 telephone-event/8000\r\n", "")
    assert (await phone.invite(body=plain)).status == 200
    line = await exchange.desk.next_line()
    assert isinstance(line.wire, PressingWire)
    assert (await line.wire.send_digits("1")).reason is DigitsReason.NOT_SUPPORTED
    held = await exchange.phone()
    assert (await held.invite(body=held.sdp("sendonly"))).status == 200
    other = await exchange.desk.next_line()
    assert isinstance(other.wire, PressingWire)
    assert (await other.wire.send_digits("1")).reason is DigitsReason.TRUNK_ERROR
    assert held.pressed == ""


async def test_a_far_end_that_hangs_up_while_keys_are_pressed_is_a_result(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    assert isinstance(line.wire, PressingWire)
    async with asyncio.TaskGroup() as group:
        pressing = group.create_task(line.wire.send_digits("1" * 32))
        await until(lambda: phone.pressed)
        await phone.hang_up()
    assert pressing.result().reason is DigitsReason.TRUNK_ERROR
    assert await ended(line) == "hang_up"


async def test_keys_that_a_hold_cuts_short_are_not_told_as_pressed(exchange: Exchange) -> None:
    phone = await exchange.phone()
    await phone.invite()
    line = await exchange.desk.next_line()
    assert isinstance(line.wire, PressingWire)
    async with asyncio.TaskGroup() as group:
        pressing = group.create_task(line.wire.send_digits("12345678"))
        await until(lambda: phone.pressed)
        await phone.invite(body=phone.sdp("sendonly"))
    assert pressing.result() == DigitsResult(DigitsReason.TRUNK_ERROR, "on hold")
    assert len(phone.pressed) < 8
    assert not line.ended.done()
