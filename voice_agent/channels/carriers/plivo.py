"""Plivo's audio streaming, both ways: G.711 µ-law at 8 kHz as Base64 in JSON. Pure.

A checkpoint comes back as ``playedStream`` when the audio before it has been played, and not at all when it was dropped
by ``clearAudio``. Plivo has no message for the end of a call: the socket closes. Names and forms are those of
plivo.com/docs, "Audio Streaming".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from voice_agent.audio.g711 import ulaw_encode
from voice_agent.call.wire import MarkMessage, WireMessage, WireTraits
from voice_agent.channels.carriers.payloads import encoded, read_ulaw, stream_id
from voice_agent.channels.messages import BadMessage, CallerHangUp, read_object
from voice_agent.channels.streaming.fields import number_at, object_at, read_key, text_at
from voice_agent.channels.streaming.serializer import Inbound, MarkReached, Message, Started

CHANNEL = "plivo"
RATE = 8000


class PlivoSerializer:
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
            raise BadMessage("not_json", "Plivo sends text.")
        body = read_object(message)
        match text_at(body, "event"):
            case "media" if self._stream and not self._stopped:
                media = object_at(body, "media")
                return read_ulaw(media) if media.get("track", "inbound") == "inbound" else ()
            case "start" if not self._stream:
                return (self._start(object_at(body, "start")),)
            case "dtmf":
                return (read_key(text_at(object_at(body, "dtmf"), "digit")),)
            case "playedStream" if name := text_at(body, "name"):
                return (MarkReached(name),)
            case "stop" if self._stream and not self._stopped:
                self._stopped = True
                return (CallerHangUp(),)
        return ()

    def _start(self, start: Mapping[str, Any]) -> Started:
        media = object_at(start, "mediaFormat")
        if text_at(media, "encoding") != "audio/x-mulaw" or number_at(media, "sampleRate", RATE) != RATE:
            raise BadMessage("bad_format", "Audio must be audio/x-mulaw at 8000 Hz.")
        call = text_at(start, "callId")
        if not call:
            raise BadMessage("bad_start", "The stream does not say which call it is.")
        self._stream = stream_id(text_at(start, "streamId"))
        return Started(call)

    def audio(self, pcm: bytes) -> Message:
        payload = encoded(ulaw_encode(pcm))
        media = f'{{"contentType":"audio/x-mulaw","sampleRate":8000,"payload":"{payload}"}}'
        return f'{{"event":"playAudio","media":{media}}}'

    def clear(self) -> Iterable[Message]:
        return (json.dumps({"event": "clearAudio", "streamId": self._stream}),)

    def message(self, message: WireMessage) -> Message | None:
        if not isinstance(message, MarkMessage):
            return None
        return json.dumps({"event": "checkpoint", "streamId": self._stream, "name": message.name})

    def hang_up(self, reason: str) -> Iterable[Message]:
        return ()  # the call is ended by the REST API: it outlives its stream
