"""RTP packets and their numbers (RFC 3550), keys as events (RFC 4733), receiver reports. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from voice_agent.digits import KEYS

HEADER_BYTES = 12
MAX_PACKET_BYTES = 2048
EVENTS = "0123456789*#ABCD"
"""Keys by their event number."""
EVENT_VOLUME = 10
"""Loudness of keys that we send, in dB below full scale."""
_HEADER = struct.Struct("!BBHII")
_EVENT = struct.Struct("!BBH")
_REPORT = struct.Struct("!BBHIIIIIII")


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet. ``sequence`` has 16 bits, ``timestamp`` and ``source`` (SSRC) have 32."""

    payload_type: int
    sequence: int
    timestamp: int
    source: int
    payload: bytes = field(repr=False)
    marker: bool = False

    def __bytes__(self) -> bytes:
        second = self.payload_type | (0x80 if self.marker else 0)
        return _HEADER.pack(0x80, second, self.sequence, self.timestamp, self.source) + self.payload


def parse(data: bytes) -> Packet | None:
    """Read one datagram; None if it is no RTP packet."""
    if not HEADER_BYTES < len(data) <= MAX_PACKET_BYTES or data[0] >> 6 != 2:
        return None
    first, second, sequence, timestamp, source = _HEADER.unpack_from(data)
    start, end = HEADER_BYTES + 4 * (first & 0x0F), len(data)
    if first & 0x10:
        if len(data) < start + 4:
            return None
        start += 4 + 4 * int.from_bytes(data[start + 2 : start + 4], "big")
    if first & 0x20:
        end -= data[-1]
    if start >= end:
        return None
    return Packet(second & 0x7F, sequence, timestamp, source, data[start:end], bool(second & 0x80))


def event_of(payload: bytes) -> tuple[str, bool] | None:
    """Return the key of an event, and whether this is its end; None for events that are no keys."""
    if len(payload) < 4:
        return None
    number, flags, _ = _EVENT.unpack_from(payload)
    return (EVENTS[number], bool(flags & 0x80)) if number < len(EVENTS) else None


def event(key: str, duration: int, *, end: bool) -> bytes:
    """Return the payload of a key that has been held down for ``duration`` timestamp steps."""
    assert key in KEYS
    return _EVENT.pack(EVENTS.index(key), EVENT_VOLUME | (0x80 if end else 0), min(duration, 0xFFFF))


class Numbers:
    """Extends 16-bit sequence numbers over their wrap-around."""

    __slots__ = ("_highest",)

    def __init__(self) -> None:
        self._highest: int | None = None

    def extend(self, sequence: int) -> int:
        """Return the number that ``sequence`` stands for: the one nearest to the highest so far."""
        if self._highest is None:
            # Not from 0: what was sent just before the first may still come.
            self._highest = sequence + 0x10000
            return self._highest
        step = (sequence - self._highest + 0x8000) % 0x10000 - 0x8000
        number = self._highest + step
        self._highest = max(self._highest, number)
        return number


class Reception:
    """What a receiver tells the sender about the way (RFC 3550, section 6.4)."""

    __slots__ = ("_before", "_first", "_highest", "_jitter", "_received", "_transit")

    def __init__(self) -> None:
        self._first: int | None = None
        self._highest = self._received = 0
        self._before = (0, 0)
        self._jitter = 0.0
        self._transit: float | None = None

    def note(self, number: int, timestamp: int, now: float, clock: int) -> None:
        """A packet has come. ``number``: extended; ``clock``: timestamp steps per second."""
        if self._first is None:
            self._first = number
        self._highest = max(self._highest, number)
        self._received += 1
        transit = now * clock - timestamp
        if self._transit is not None:
            difference = abs(transit - self._transit)
            if difference < 0x40000000:  # not over the timestamp's own wrap-around
                self._jitter += (difference - self._jitter) / 16
        self._transit = transit

    def report(self, ours: int, theirs: int) -> bytes:
        """Return a receiver report from SSRC ``ours`` about SSRC ``theirs``."""
        if self._first is None:
            return struct.pack("!BBHI", 0x80, 201, 1, ours)
        expected = self._highest - self._first + 1
        lost = max(0, min(expected - self._received, 0x7FFFFF))
        new_expected, new_received = expected - self._before[0], self._received - self._before[1]
        self._before = (expected, self._received)
        missing = max(0, new_expected - new_received)
        share = min(255, 256 * missing // new_expected) if new_expected > 0 else 0
        highest = self._highest & 0xFFFFFFFF
        return _REPORT.pack(
            0x81, 201, 7, ours, theirs, share << 24 | lost, highest, int(self._jitter) & 0xFFFFFFFF, 0, 0
        )
