"""Twilio's Media Streams, both ways (``<Connect><Stream>``): G.711 µ-law at 8 kHz as Base64 in JSON. Pure.

Numbers come as strings. Twilio plays audio from a queue of its own, echoes marks as it comes to them, and drops the
queue on ``clear``; marks of what was dropped are echoed as well. Names and forms are those of twilio.com/docs, "Media
Streams - WebSocket Messages".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from voice_agent.audio.g711 import ulaw_encode
from voice_agent.call.wire import MarkMessage, WireMessage, WireTraits
from voice_agent.channels.carriers.payloads import encoded, read_ulaw, stream_id
from voice_agent.channels.messages import BadMessage, CallerHangUp, read_object
from voice_agent.channels.streaming.fields import number_at, object_at, parameters_of, read_key, text_at
from voice_agent.channels.streaming.serializer import Inbound, MarkReached, Message, Started

CHANNEL = "twilio"
RATE = 8000


class TwilioSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`."""

    rate = RATE
    frame_ms = 20

    def __init__(self) -> None:
        self.traits = WireTraits(CHANNEL, echoes_marks=True, can_transfer=True, can_send_digits=True)
        self._stream = ""
        self._stopped = False

    def opening(self) -> Iterable[Message]:
        return ()

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            raise BadMessage("not_json", "Twilio sends text.")
        body = read_object(message)
        match text_at(body, "event"):
            case "media" if self._stream and not self._stopped:
                media = object_at(body, "media")
                return read_ulaw(media) if media.get("track", "inbound") == "inbound" else ()
            case "start" if not self._stream:
                return (self._start(text_at(body, "streamSid"), object_at(body, "start")),)
            case "dtmf":
                return (read_key(text_at(object_at(body, "dtmf"), "digit")),)
            case "mark" if name := text_at(object_at(body, "mark"), "name"):
                return (MarkReached(name),)
            case "stop" if self._stream and not self._stopped:
                self._stopped = True
                return (CallerHangUp(),)
        return ()

    def _start(self, stream: str, start: Mapping[str, Any]) -> Started:
        media = object_at(start, "mediaFormat")
        known = text_at(media, "encoding") == "audio/x-mulaw" and number_at(media, "sampleRate", RATE) == RATE
        if not known or number_at(media, "channels", 1) != 1:
            raise BadMessage("bad_format", "Audio must be audio/x-mulaw, 8000 Hz, one channel.")
        call = text_at(start, "callSid")
        if not call:
            raise BadMessage("bad_start", "The stream does not say which call it is.")
        self._stream = stream_id(stream or text_at(start, "streamSid"))
        return Started(call, parameters=parameters_of(object_at(start, "customParameters")))

    def audio(self, pcm: bytes) -> Message:
        payload = encoded(ulaw_encode(pcm))
        return f'{{"event":"media","streamSid":"{self._stream}","media":{{"payload":"{payload}"}}}}'

    def clear(self) -> Iterable[Message]:
        return (json.dumps({"event": "clear", "streamSid": self._stream}),)

    def message(self, message: WireMessage) -> Message | None:
        if not isinstance(message, MarkMessage):
            return None
        return json.dumps({"event": "mark", "streamSid": self._stream, "mark": {"name": message.name}})

    def hang_up(self, reason: str) -> Iterable[Message]:
        # When the socket closes, `<Connect>` is over, and with it the call.
        return ()
