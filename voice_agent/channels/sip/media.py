"""The media of one call: packets in, canonical PCM out, and the reverse. Pure but for libav's codec.

::

    datagram ─▶ source, SSRC ─▶ order, gaps ─▶ codec ─▶ concealment ─▶ intake ─▶ call
    frame ────▶ 16 kHz to the codec's rate ─▶ codec ─▶ packet
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass

from voice_agent.audio.concealment import Concealer
from voice_agent.audio.frames import FRAME_MS, SAMPLE_BYTES, SAMPLE_RATE, SILENCE, Reframer
from voice_agent.audio.resample import Resampler
from voice_agent.channels.limits import TokenBucket
from voice_agent.channels.sip import rtp
from voice_agent.channels.sip.codecs import transcoder
from voice_agent.channels.sip.jitter import MAX_MISORDER, Heard, JitterBuffer
from voice_agent.channels.sip.presses import Press
from voice_agent.channels.sip.sdp import Agreed
from voice_agent.channels.sip.transactions import Address

log = logging.getLogger(__name__)

PACKETS = (200.0, 150.0)
"""Packets a far end may send: at once, and per second after that. 10 ms packets need 100, keys some more."""
LONGEST_GAP_S = 0.2
"""Audio put in place of what is missing; what is longer, a call hears as silence by itself."""
PROBATION = 2
"""Packets in a row by which a new sender is believed at the same address."""


@dataclass(frozen=True, slots=True)
class Received:
    """What one packet brought: PCM at the codec's rate, and the key that went down with it."""

    pcm: bytes = b""
    key: str = ""


class MediaReceiver:
    """Reads what comes.

    Args:
        agreed: Codec and payload types.
        hosts: IP addresses that media may come from; it is locked to the first that sends any.
    """

    def __init__(self, agreed: Agreed, hosts: frozenset[str], now: float) -> None:
        self.codec = agreed.codec
        self._types = (agreed.payload_type, agreed.dtmf_type)
        self._hosts = hosts
        self._packets = TokenBucket(*PACKETS, now)
        self._transcoder = transcoder(agreed.codec)
        self._concealer = Concealer(agreed.codec.rate)
        self.peer: Address | None = None
        self._source: int | None = None
        self._stranger = (0, 0)
        self._last_key: tuple[int | None, int] | None = None
        self._begin_stream()

    def _begin_stream(self) -> None:
        self._numbers, self.reception = rtp.Numbers(), rtp.Reception()
        self.buffer = JitterBuffer(self.codec.clock)

    def number(self, agreed: Agreed) -> None:
        """The far end gives other numbers to codec and keys, and sends from where it did."""
        self._types = (agreed.payload_type, agreed.dtmf_type)

    def agree(self, agreed: Agreed, hosts: frozenset[str]) -> None:
        """The far end has moved: the next that sends from there is listened to."""
        if agreed.codec is not self.codec:
            self.codec = agreed.codec
            self._transcoder, self._concealer = transcoder(agreed.codec), Concealer(agreed.codec.rate)
        self._types, self._hosts = (agreed.payload_type, agreed.dtmf_type), hosts
        self.peer = self._source = None

    @property
    def source(self) -> int | None:
        """SSRC of the far end, once known."""
        return self._source

    def take(self, data: bytes, source: Address, now: float) -> Received | None:
        """Take a datagram; None if it is not the far end's, or no packet."""
        # Strangers first: what they send must not use up what the far end may.
        if source != self.peer and (self.peer is not None or source[0] not in self._hosts):
            return None
        if not self._packets.take(1, now):
            return None
        packet = rtp.parse(data)
        if packet is None or not self._is_theirs(packet, source):
            return None
        number = self._numbers.extend(packet.sequence)
        codec_type, dtmf_type = self._types
        self.reception.note(number, packet.timestamp, now, self.codec.clock)
        if packet.payload_type == codec_type:
            heard = self.buffer.push(number, packet.timestamp, len(packet.payload), packet.payload, now)
            return Received(self._pcm(heard))
        key = self._key(packet, number) if packet.payload_type == dtmf_type else ""
        # Whatever else it is (comfort noise): it has its place in the sequence.
        return Received(self._pcm(self.buffer.push(number, packet.timestamp, 0, b"", now)), key)

    def release(self, now: float) -> bytes:
        """Return PCM that waits no longer for what is missing before it."""
        return self._pcm(self.buffer.release(now))

    def _is_theirs(self, packet: rtp.Packet, source: Address) -> bool:
        if packet.payload_type not in self._types and packet.payload_type != 13:
            return False
        self.peer = source
        if packet.source != self._source:
            if self._source is not None and not self._is_believed(packet):
                return False
            self._source, self._stranger = packet.source, (0, 0)
            self._begin_stream()
            self._last_key = None
        return True

    def _is_believed(self, packet: rtp.Packet) -> bool:
        """A sender that begins anew is known by several packets in a row."""
        source, seen = self._stranger
        self._stranger = (packet.source, seen + 1 if source == packet.source else 1)
        return self._stranger[1] >= PROBATION

    def _key(self, packet: rtp.Packet, number: int) -> str:
        """A key is told once, with the first packet of it that comes: all of them have its timestamp.

        Which comes after which is told by their numbers: timestamps may jump back where a line is switched over.
        """
        event = rtp.event_of(packet.payload)
        if event is None:
            return ""
        timestamp, last = self._last_key or (None, number - 1)
        if last - MAX_MISORDER <= number <= last:
            return ""  # a packet of this key or of one before it, which comes late
        self._last_key = packet.timestamp, number
        return event[0] if packet.timestamp != timestamp else ""

    def _pcm(self, heard: list[Heard]) -> bytes:
        return b"".join(self._one(item) for item in heard)

    def _one(self, item: Heard) -> bytes:
        ratio = self.codec.rate // self.codec.clock
        longest = int(LONGEST_GAP_S * self.codec.rate)
        missing = self._concealer.lost(min(item.lost * ratio, longest))
        if item.silent:
            missing += self._concealer.good(bytes(min(item.silent * ratio, longest) * SAMPLE_BYTES))
        try:
            pcm = self._transcoder.decode(item.payload)
        except Exception as fault:  # noqa: BLE001 - libav raises many kinds; one bad packet is one lost packet
            log.debug("a packet could not be decoded: %s", type(fault).__name__)
            return missing + self._concealer.lost(len(item.payload) * ratio)
        return missing + self._concealer.good(pcm)


class MediaSender:
    """Writes what leaves: one packet for each frame."""

    def __init__(self, agreed: Agreed) -> None:
        self.ssrc = secrets.randbits(32)
        # Not from the top: some receivers take a wrap-around within the first packets for a loss.
        self._sequence = secrets.randbits(15)
        self._timestamp = self._pressed_at = secrets.randbits(31)
        self.agree(agreed)

    def agree(self, agreed: Agreed) -> None:
        """Speak what is agreed from now on."""
        codec = agreed.codec
        self._steps = codec.clock * FRAME_MS // 1000
        self.number(agreed)
        self._transcoder = transcoder(codec)
        self._resampler = Resampler(SAMPLE_RATE, codec.rate)
        self._reframer = Reframer(codec.rate * FRAME_MS // 1000 * SAMPLE_BYTES)
        # The filter's delay is made up for beforehand: every frame then gives one.
        self._reframer.push(self._resampler.push(SILENCE))

    def number(self, agreed: Agreed) -> None:
        """The far end gives other numbers to codec and keys."""
        self._payload_type, self._dtmf_type = agreed.payload_type, agreed.dtmf_type

    def packet(self, pcm: bytes | None, skipped: int, *, first: bool) -> bytes:
        """Return the packet of a frame; None stands for silence. ``skipped``: frames that were not sent before it."""
        frames = self._reframer.push(self._resampler.push(pcm or SILENCE)) or [self._reframer.flush()]
        self._advance(skipped)
        payload = self._transcoder.encode(frames[0])
        return bytes(rtp.Packet(self._payload_type, self._sequence, self._timestamp, self.ssrc, payload, first))

    def press(self, press: Press, skipped: int) -> bytes:
        """Return the packet of a key, in the place of a frame. All packets of one key have the time of its first."""
        assert self._dtmf_type is not None
        self._advance(skipped)
        if press.first:
            self._pressed_at = self._timestamp
        payload = rtp.event(press.key, press.held * self._steps, end=press.end)
        return bytes(rtp.Packet(self._dtmf_type, self._sequence, self._pressed_at, self.ssrc, payload, press.first))

    def _advance(self, skipped: int) -> None:
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._timestamp = (self._timestamp + self._steps * (1 + skipped)) & 0xFFFFFFFF
