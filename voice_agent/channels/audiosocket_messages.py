"""Asterisk's AudioSocket: one byte of kind, two of length (big-endian), then the payload. Pure.

The kinds are those of ``res_audiosocket.h`` in Asterisk 18 to 23. There is no message that drops audio, so none must be
sent ahead of its time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence

from voice_agent.call.wire import WireMessage, WireTraits
from voice_agent.channels.messages import BadMessage, CallerHangUp, Key
from voice_agent.channels.streaming.serializer import Inbound, Media, Message, Started
from voice_agent.digits import KEYS

CHANNEL = "audiosocket"
HEADER_BYTES = 3
MAX_PAYLOAD_BYTES = 8 * 1024
"""Longer than any: 20 ms at 48 kHz are 1,920 bytes."""
HANG_UP, IDENTITY, DTMF, ERROR = 0x00, 0x01, 0x03, 0xFF
AUDIO_HZ: Mapping[int, int] = {
    0x10: 8000,
    0x11: 12000,
    0x12: 16000,
    0x13: 24000,
    0x14: 32000,
    0x15: 44100,
    0x16: 48000,
}
_KIND_OF = {hz: kind for kind, hz in AUDIO_HZ.items()}


def frame(kind: int, payload: bytes = b"") -> bytes:
    """Return one message."""
    return bytes((kind,)) + len(payload).to_bytes(2, "big") + payload


def payload_bytes(header: bytes) -> int:
    """Return the length of the payload that follows a header.

    Raises:
        ValueError: No message is that long.
    """
    length = int.from_bytes(header[1:3], "big")
    if length > MAX_PAYLOAD_BYTES:
        raise ValueError(f"an AudioSocket message of {length} bytes; at most {MAX_PAYLOAD_BYTES} are taken")
    return length


def rate_of(message: bytes) -> int | None:
    """Return the samples per second of an audio message, or None for any other."""
    return AUDIO_HZ.get(message[0])


class AudioSocketSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`. Audio of another rate is refused."""

    frame_ms = 20

    def __init__(self, rate: int = 8000) -> None:
        """Args: ``rate`` in Hz, one of `AUDIO_HZ`."""
        self.rate = rate
        self.traits = WireTraits(CHANNEL, can_send_digits=True)
        self._kind = _KIND_OF[rate]

    def opening(self) -> Iterable[Message]:
        return ()

    def read(self, message: Message) -> Sequence[Inbound]:
        assert isinstance(message, bytes)
        kind, payload = message[0], message[HEADER_BYTES:]
        if kind == self._kind:
            if len(payload) % 2:
                raise BadMessage("bad_audio", "Half a sample.")
            return (Media(payload),) if payload else ()
        if kind == DTMF:
            digit = payload.decode("ascii", "replace").upper()
            if len(digit) != 1 or digit not in KEYS:
                raise BadMessage("bad_key", "No key.")
            return (Key(digit),)
        if kind in (HANG_UP, ERROR):
            return (CallerHangUp(),)
        if kind == IDENTITY:
            return (Started(str(read_identity(payload))),)
        if kind in AUDIO_HZ:
            raise BadMessage("bad_rate", "The audio changed its rate.")
        # Kinds that later versions add are passed over, as the protocol's own sources ask for.
        return ()

    def audio(self, pcm: bytes) -> Message:
        return frame(self._kind, pcm)

    def clear(self) -> Iterable[Message]:
        return ()

    def message(self, message: WireMessage) -> Message | None:
        return None

    def hang_up(self, reason: str) -> Iterable[Message]:
        return (frame(HANG_UP),)


def read_identity(payload: bytes) -> uuid.UUID:
    """Return the identity that the far end begins with.

    Raises:
        BadMessage: It is not 16 bytes long.
    """
    if len(payload) != 16:
        raise BadMessage("bad_identity", "The identity of a call has 16 bytes.")
    return uuid.UUID(bytes=payload)
