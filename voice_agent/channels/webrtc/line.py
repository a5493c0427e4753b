"""The audio of one connection, both ways, in place of aiortc's sender and receiver.

Those decode in a thread per call, encode in another, and wake three tasks a frame. Here a packet goes
straight from the transport to the ears and from the mouth to the transport, within one call of the event
loop. This module is the only one that touches what aiortc does not document; `test_line.py` fails when
that changes. What is relied on:

- the peer connection calls ``receive``, ``send`` and ``stop`` of a transceiver's receiver and sender;
- a DTLS transport routes packets to what was registered with it, and ``_send_rtp`` never waits.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import struct
import time
from collections.abc import Callable, Coroutine
from typing import Any

from aiortc.clock import current_ntp_time
from aiortc.rtcrtpparameters import RTCRtpReceiveParameters, RTCRtpSendParameters
from aiortc.rtcrtpreceiver import StreamStatistics
from aiortc.rtcrtptransceiver import RTCRtpTransceiver
from aiortc.rtp import (
    AnyRtcpPacket,
    RtcpByePacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpSdesPacket,
    RtcpSenderInfo,
    RtcpSourceInfo,
    RtcpSrPacket,
    RtpPacket,
)

log = logging.getLogger(__name__)

RTP_RATE = 48_000
REPORT_S = 5.0
"""Seconds between RTCP reports, the minimum that RFC 3550 recommends."""
MAX_SOURCES = 4
"""Streams of one sender that are told apart in reports."""

_HEADER = struct.Struct("!BBHII")
_VERSION, _MARKER = 0x80, 0x80


class AudioLine:
    """Sends and receives one connection's RTP. Implements what aiortc's DTLS transport expects of either end.

    Attributes:
        sent: Packets sent.
        round_trip_s: The last round trip by the far end's reports, or None.
    """

    def __init__(
        self, transceiver: RTCRtpTransceiver, on_packet: Callable[[int, int, bytes], None], on_open: Callable[[], None]
    ) -> None:
        """Take over ``transceiver``.

        Args:
            on_packet: Called with each packet's sequence number, timestamp (48 kHz) and payload.
            on_open: Called once audio can be sent.
        """
        self._transceiver, self._on_packet, self._on_open = transceiver, on_packet, on_open
        sender, receiver = transceiver.sender, transceiver.receiver
        self._ssrc: int = sender._ssrc
        vars(receiver).update(receive=self._receive, stop=self._stop_receiving)
        vars(sender).update(send=self._send, stop=self._stop_sending)
        self._payload_type: int | None = None
        self._cname = ""
        self._sequence = secrets.randbelow(1 << 15)
        self._origin = secrets.randbits(32)
        self._octets = self.sent = 0
        self._last_timestamp = 0
        self._sources: dict[int, StreamStatistics] = {}
        self._reports: dict[int, tuple[int, float]] = {}
        self._receives_report_at: tuple[int, float] | None = None
        self.round_trip_s: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether audio can be sent."""
        return self._payload_type is not None

    def send(self, payload: bytes, at_s: float, *, first: bool) -> None:
        """Send one packet to be played at ``at_s`` seconds of any one clock. Ignored while the line is not open."""
        if self._payload_type is None:
            return
        marker = _MARKER if first else 0
        timestamp = (self._origin + round(at_s * RTP_RATE)) & 0xFFFFFFFF
        header = _HEADER.pack(_VERSION, marker | self._payload_type, self._sequence, timestamp, self._ssrc)
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._last_timestamp = timestamp
        self.sent += 1
        self._octets += len(payload)
        self._transmit(header + payload)

    # What the peer connection calls instead of the sender's and receiver's own methods

    async def _receive(self, parameters: RTCRtpReceiveParameters) -> None:
        self._transceiver.receiver.transport._register_rtp_receiver(self, parameters)

    async def _send(self, parameters: RTCRtpSendParameters) -> None:
        if self.is_open:
            return
        self._cname = parameters.rtcp.cname or ""
        self._transceiver.sender.transport._register_rtp_sender(self, parameters)
        self._payload_type = parameters.codecs[0].payloadType
        self._timer = asyncio.get_running_loop().call_later(REPORT_S / 2, self._report)
        self._on_open()

    async def _stop_receiving(self) -> None:
        self._transceiver.receiver.transport._unregister_rtp_receiver(self)

    async def _stop_sending(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_open:
            self._transmit(bytes(RtcpByePacket(sources=[self._ssrc])))
            self._payload_type = None
        self._transceiver.sender.transport._unregister_rtp_sender(self)

    # What the DTLS transport calls

    async def _handle_rtp_packet(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        statistics = self._sources.get(packet.ssrc)
        if statistics is None:
            if len(self._sources) >= MAX_SOURCES:
                self._sources.clear()
            statistics = self._sources[packet.ssrc] = StreamStatistics(RTP_RATE)
        statistics.add(packet)
        if packet.payload:
            self._on_packet(packet.sequence_number, packet.timestamp, packet.payload)

    async def _handle_rtcp_packet(self, packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpSrPacket):
            if len(self._reports) >= MAX_SOURCES:
                self._reports.clear()
            self._reports[packet.ssrc] = (packet.sender_info.ntp_timestamp >> 16) & 0xFFFFFFFF, time.monotonic()
        if isinstance(packet, RtcpSrPacket | RtcpRrPacket):
            for report in packet.reports:
                self._note_round_trip(report)

    def _handle_disconnect(self) -> None:
        """Nothing: the peer connection's state says so as well."""

    # Inner workings

    def _note_round_trip(self, report: RtcpReceiverInfo) -> None:
        if self._receives_report_at is None or report.ssrc != self._ssrc or not report.dlsr:
            return
        stamp, at = self._receives_report_at
        if report.lsr == stamp:
            self.round_trip_s = max(0.0, time.monotonic() - at - report.dlsr / 65536)

    def _report(self) -> None:
        """Tell the far end what was sent, and how well its own packets arrive."""
        self._timer = asyncio.get_running_loop().call_later(REPORT_S, self._report)
        now, ntp = time.monotonic(), current_ntp_time()
        reports = [self._received(ssrc, statistics, now) for ssrc, statistics in self._sources.items()]
        info = RtcpSenderInfo(ntp, self._last_timestamp, self.sent & 0xFFFFFFFF, self._octets & 0xFFFFFFFF)
        self._receives_report_at = (ntp >> 16) & 0xFFFFFFFF, now
        names = RtcpSdesPacket(chunks=[RtcpSourceInfo(ssrc=self._ssrc, items=[(1, self._cname.encode())])])
        self._transmit(bytes(RtcpSrPacket(ssrc=self._ssrc, sender_info=info, reports=reports)) + bytes(names))

    def _received(self, ssrc: int, statistics: StreamStatistics, now: float) -> RtcpReceiverInfo:
        stamp, at = self._reports.get(ssrc, (0, now))
        return RtcpReceiverInfo(
            ssrc=ssrc,
            fraction_lost=min(statistics.fraction_lost, 0xFF),
            packets_lost=statistics.packets_lost,
            highest_sequence=statistics.max_seq or 0,
            # Timestamps are the far end's to choose: what they add up to need not fit into the report.
            jitter=min(statistics.jitter, 0xFFFFFFFF),
            lsr=stamp,
            dlsr=int((now - at) * 65536) & 0xFFFFFFFF,
        )

    def _transmit(self, data: bytes) -> None:
        try:
            _at_once(self._transceiver.sender.transport._send_rtp(data))
        except ConnectionError:
            log.debug("a packet was not sent: the connection is going")


def _at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("the transport waited while it sent; this release of aiortc is not supported")
