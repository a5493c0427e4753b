"""Telnyx's media streaming, both ways in its RTP mode: G.711 or L16 as Base64 in JSON. Pure.

Media may come out of order and is put back by its chunk numbers. Marks come back as audio before them has been played,
or dropped by ``clear``. L16 is taken for little-endian: the documentation does not say. Names and forms are those of
developers.telnyx.com, "Stream call media over WebSocket".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from voice_agent.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode
from voice_agent.call.wire import MarkMessage, WireMessage, WireTraits
from voice_agent.channels.carriers.payloads import encoded, read_audio
from voice_agent.channels.messages import BadMessage, CallerHangUp, read_object
from voice_agent.channels.streaming.fields import (
    number_at,
    object_at,
    parameters_of,
    read_key,
    text_at,
    whole_samples,
)
from voice_agent.channels.streaming.serializer import Inbound, MarkReached, Media, Message, Started
from voice_agent.channels.webrtc.reorder import Reorder

CHANNEL = "telnyx"
_SPAN = 1 << 16
_CODECS: Mapping[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "PCMU": (ulaw_decode, ulaw_encode),
    "PCMA": (alaw_decode, alaw_encode),
    "L16": (whole_samples, whole_samples),
}


class TelnyxSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`. The codec comes with ``start``."""

    frame_ms = 20

    def __init__(self) -> None:
        self.traits = WireTraits(CHANNEL, echoes_marks=True, can_transfer=True, can_send_digits=True)
        self.rate = 8000
        self._decode, self._encode = _CODECS["PCMU"]
        self._order: Reorder[Sequence[Media]] = Reorder()
        self._started = self._stopped = False

    def opening(self) -> Iterable[Message]:
        return ()

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            raise BadMessage("not_json", "Telnyx sends text.")
        body = read_object(message)
        match text_at(body, "event"):
            case "media" if self._started and not self._stopped:
                return self._media(object_at(body, "media"))
            case "start" if not self._started:
                return (self._start(object_at(body, "start")),)
            case "dtmf":
                return (read_key(text_at(object_at(body, "dtmf"), "digit")),)
            case "mark" if name := text_at(object_at(body, "mark"), "name"):
                return (MarkReached(name),)
            case "stop" if self._started and not self._stopped:
                self._stopped = True
                return (CallerHangUp(),)
        return ()

    def _start(self, start: Mapping[str, Any]) -> Started:
        media = object_at(start, "media_format")
        codec, rate = text_at(media, "encoding"), number_at(media, "sample_rate", 8000)
        if codec not in _CODECS or rate not in ((16000,) if codec == "L16" else (8000,)):
            raise BadMessage("bad_format", "Audio must be PCMU or PCMA at 8000 Hz, or L16 at 16000 Hz.")
        call = text_at(start, "call_control_id")
        if not call:
            raise BadMessage("bad_start", "The stream does not say which call it is.")
        self._started, self.rate, (self._decode, self._encode) = True, rate, _CODECS[codec]
        told = parameters_of(object_at(start, "custom_parameters"))
        return Started(call, text_at(start, "from"), text_at(start, "to"), told)

    def _media(self, media: Mapping[str, Any]) -> Sequence[Media]:
        if media.get("track", "inbound") != "inbound":
            return ()
        heard = read_audio(media, self._decode)
        chunk = number_at(media, "chunk", -1) if "chunk" in media else None
        if chunk is None:
            return heard
        return tuple(chain.from_iterable(self._order.push(chunk % _SPAN, heard)))

    def audio(self, pcm: bytes) -> Message:
        return f'{{"event":"media","media":{{"payload":"{encoded(self._encode(pcm))}"}}}}'

    def clear(self) -> Iterable[Message]:
        return (json.dumps({"event": "clear"}),)

    def message(self, message: WireMessage) -> Message | None:
        if not isinstance(message, MarkMessage):
            return None
        return json.dumps({"event": "mark", "mark": {"name": message.name}})

    def hang_up(self, reason: str) -> Iterable[Message]:
        return ()  # the call is ended by the REST API: it outlives its stream
