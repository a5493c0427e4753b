"""Opus as a call needs it: one channel of speech, in and out, on PyAV.

Encoding a frame that was encoded before gives the packet that came of it then: canned replies, which are most
of what an agent says, cost no encoder. Opus depends on what came before, so packets are known by the whole
speech up to them::

    speech       f1 ─▶ f2 ─▶ f3 ─▶ f4         "Hello, how can I …"
    known as     k1    k2    k3               k(n) = hash(k(n-1), f(n))
    sent         from the cache    encoded    by an encoder led through the last frames first

All of it runs on the event loop: a frame costs 0.15 ms to encode and 0.05 ms to decode, less than handing it
to a thread and back.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from fractions import Fraction

import av
from av.audio.codeccontext import AudioCodecContext

from voice_agent.audio.frames import FRAME_SAMPLES, SAMPLE_RATE

log = logging.getLogger(__name__)

OPUS_RATE = 48_000
"""Rate of Opus timestamps, and of what the decoder gives."""
BIT_RATE = 24_000
"""Bits a second for one channel of speech at 16 kHz: transparent for telephone-like use by the codec's own tests."""
COMPLEXITY = 5
MAX_PACKETS = 60_000
"""Packets kept: 20 minutes of speech, about 12 MB."""
LEAD_IN = 5
"""Frames an encoder is led through before it goes on where the cache ended: its memory is about so long."""
_TIME_BASE = Fraction(1, SAMPLE_RATE)
_OPUS_BASE = Fraction(1, OPUS_RATE)


class PacketCache:
    """Opus packets by what was said up to them; the least recently used go first. Shared by all calls."""

    def __init__(self, max_packets: int = MAX_PACKETS) -> None:
        self._packets: OrderedDict[int, bytes] = OrderedDict()
        self._max = max_packets

    def __len__(self) -> int:
        return len(self._packets)

    def get(self, key: int) -> bytes | None:
        packet = self._packets.get(key)
        if packet is not None:
            self._packets.move_to_end(key)
        return packet

    def put(self, key: int, packet: bytes) -> None:
        self._packets[key] = packet
        if len(self._packets) > self._max:
            self._packets.popitem(last=False)


class SpeechEncoder:
    """Encodes one call's speech. Attributes: ``encoded``: frames that were not in the cache."""

    def __init__(self, cache: PacketCache) -> None:
        self._cache = cache
        self._key = 0
        self._before: deque[bytes] = deque(maxlen=LEAD_IN)
        self._codec: AudioCodecContext | None = None
        self.encoded = 0

    def restart(self) -> None:
        """What comes next has nothing to do with what was before: speech after a pause."""
        self._key = 0
        self._before.clear()
        self._codec = None

    def encode(self, frame: bytes) -> bytes:
        """Return the packet of one canonical frame of 20 ms."""
        self._key = key = hash((self._key, frame))
        packet = self._cache.get(key)
        if packet is None:
            packet = self._encode(frame)
            self._cache.put(key, packet)
        else:
            self._codec = None
        self._before.append(frame)
        return packet

    def _encode(self, frame: bytes) -> bytes:
        self.encoded += 1
        if self._codec is None:
            self._codec = _encoder()
            for earlier in self._before:
                _push(self._codec, earlier)
        return _push(self._codec, frame)


def _encoder() -> AudioCodecContext:
    codec = av.CodecContext.create("libopus", "w")
    assert isinstance(codec, AudioCodecContext)
    codec.sample_rate, codec.format, codec.layout = SAMPLE_RATE, "s16", "mono"
    codec.bit_rate, codec.time_base = BIT_RATE, _TIME_BASE
    codec.options = {"application": "voip", "compression_level": str(COMPLEXITY)}
    return codec


def _push(codec: AudioCodecContext, frame: bytes) -> bytes:
    audio = av.AudioFrame(format="s16", layout="mono", samples=FRAME_SAMPLES)
    audio.sample_rate = SAMPLE_RATE
    audio.planes[0].update(frame)
    return b"".join(bytes(packet) for packet in codec.encode(audio))


class SpeechDecoder:
    """Decodes one caller's packets."""

    def __init__(self) -> None:
        codec = av.CodecContext.create("libopus", "r")
        assert isinstance(codec, AudioCodecContext)
        codec.format, codec.layout, codec.sample_rate = "s16", "mono", OPUS_RATE
        self._codec = codec

    def decode(self, payload: bytes) -> bytes:
        """Return the PCM of a packet: 48 kHz, mono, int16; ``b""`` for one that is no Opus."""
        try:
            frames = self._codec.decode(av.Packet(payload))
        except av.FFmpegError:
            log.debug("a packet was no Opus")
            return b""
        return b"".join(bytes(frame.planes[0])[: frame.samples * 2] for frame in frames)
