"""What is relied on in aiortc beyond its documented interface still holds, and packets survive a bad network."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import random
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from aioice import Connection
from aiortc import RTCRtpReceiver, RTCRtpSender
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpreceiver import RemoteStreamTrack
from aiortc.rtp import RtpPacket

from tests.channels.contract import level, sounding, tone
from tests.support.lines import Line, RecordingService, serving, until
from tests.support.webrtc_caller import WebRtcCaller
from voice_agent.config import Channels, WebRtcOptions


@pytest.fixture
async def call() -> AsyncIterator[tuple[WebRtcCaller, Line]]:
    service = RecordingService(channels=Channels(webrtc=WebRtcOptions(bind_addresses=("127.0.0.1",))))
    async with serving(service) as address:
        caller = await WebRtcCaller.dial(address)
        yield caller, await service.calls.next_line()
        await caller.close()


def parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_the_internals_that_are_relied_on_have_their_known_form() -> None:
    assert parameters(RTCRtpReceiver.receive) == ["self", "parameters"]
    assert parameters(RTCRtpSender.send) == ["self", "parameters"]
    assert parameters(RTCRtpReceiver._handle_rtp_packet) == ["self", "packet", "arrival_time_ms"]
    assert parameters(RTCRtpReceiver._handle_rtcp_packet) == ["self", "packet"]
    assert parameters(RTCRtpReceiver._handle_disconnect) == ["self"]
    assert parameters(RTCDtlsTransport._register_rtp_receiver) == ["self", "receiver", "parameters"]
    assert parameters(RTCDtlsTransport._register_rtp_sender) == ["self", "sender", "parameters"]
    assert parameters(RTCDtlsTransport._send_rtp) == ["self", "data"]
    assert parameters(Connection.get_component_candidates) == ["self", "component", "addresses", "timeout"]


async def test_aiortc_decodes_and_encodes_nothing_of_ours(call: tuple[WebRtcCaller, Line]) -> None:
    caller, line = call
    await caller.speak(tone(0.2))
    await until(lambda: sounding(bytes(line.inputs.heard)))
    transceiver = line.wire.peer._connection.getTransceivers()[0]  # type: ignore[attr-defined]
    assert isinstance(transceiver.receiver.track, RemoteStreamTrack)
    assert transceiver.receiver.track._queue.qsize() == 0
    assert transceiver.receiver._RTCRtpReceiver__decoder_thread is None
    assert transceiver.sender._RTCRtpSender__rtp_task is None


async def test_reports_give_the_round_trip(call: tuple[WebRtcCaller, Line], monkeypatch: pytest.MonkeyPatch) -> None:
    _, line = call
    monkeypatch.setattr("voice_agent.channels.webrtc.line.REPORT_S", 0.3)
    audio = line.wire.peer.line  # type: ignore[attr-defined]
    line.wire.send_audio(bytes(640))
    await until(lambda: audio.round_trip_s is not None, within_s=15)
    assert 0 <= audio.round_trip_s < 5


async def test_reports_go_on_whatever_timestamps_the_far_end_makes_up(
    call: tuple[WebRtcCaller, Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, line = call
    audio, ssrc, arrives = line.wire.peer.line, 7, itertools.count(0, 60)  # type: ignore[attr-defined]
    monkeypatch.setattr("aiortc.rtcrtpreceiver.time", SimpleNamespace(time=lambda: next(arrives)))
    jitter = 0
    for number in range(200):
        packet = RtpPacket(sequence_number=number, timestamp=0xFFFFFFFF * (number % 2), ssrc=ssrc)
        await audio._handle_rtp_packet(packet, 0)
        if (jitter := audio._sources[ssrc].jitter) > 0xFFFFFFFF:
            break
    assert jitter > 0xFFFFFFFF
    assert bytes(audio._received(ssrc, audio._sources[ssrc], 0.0))


async def test_audio_survives_loss_and_reordering_on_the_way(call: tuple[WebRtcCaller, Line]) -> None:
    caller, line = call
    transport = caller.connection.getTransceivers()[0].sender.transport
    send, dice, held = transport._send_rtp, random.Random(5), []

    async def badly(data: bytes) -> None:
        """Lose one packet in twenty, and hold one in five back until after the next."""
        if dice.random() < 0.05:
            return
        if not held and dice.random() < 0.2:
            held.append(data)
            return
        await send(data)
        while held:
            await send(held.pop())

    transport._send_rtp = badly
    await caller.speak(tone(2.0))
    await until(lambda: len(sounding(bytes(line.inputs.heard))) >= len(tone(1.9)), within_s=10)
    heard = sounding(bytes(line.inputs.heard))
    assert len(heard) == pytest.approx(len(tone(2.0)), rel=0.06)
    assert level(heard) == pytest.approx(level(tone(2.0)), rel=0.2)
    await asyncio.sleep(0)
