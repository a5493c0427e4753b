"""Vonage's WebSocket endpoint: L16 at 16 kHz in binary messages of exactly 20 ms, JSON beside it. Pure.

The first text brings what the call's NCCO put into ``headers``. A ``notify`` comes back when the audio before it has
been played. There is no message for the end of a call: the socket closes. Names and forms are those of
developer.vonage.com, "WebSockets in the Vonage Voice API".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from voice_agent.call.wire import MarkMessage, WireMessage, WireTraits
from voice_agent.channels.messages import BadMessage, read_object
from voice_agent.channels.streaming.fields import (
    object_at,
    parameters_of,
    read_key,
    text_at,
    whole_samples,
)
from voice_agent.channels.streaming.serializer import Inbound, MarkReached, Media, Message, Started

CHANNEL = "vonage"
RATE = 16000
CONTENT_TYPE = f"audio/l16;rate={RATE}"
CALL_PARAMETER = "call"
"""What the caller's leg is called by Vonage, as our own NCCO puts it into the headers."""


class VonageSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`."""

    rate = RATE
    frame_ms = 20

    def __init__(self) -> None:
        self.traits = WireTraits(CHANNEL, echoes_marks=True, can_transfer=True, can_send_digits=True)
        self._started = False

    def opening(self) -> Iterable[Message]:
        return ()

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            return (Media(whole_samples(message)),) if self._started and message else ()
        body = read_object(message)
        match text_at(body, "event"):
            case "websocket:connected" if not self._started:
                if text_at(body, "content-type").replace(" ", "") != CONTENT_TYPE:
                    raise BadMessage("bad_format", f"Audio must be {CONTENT_TYPE}.")
                self._started = True
                told = parameters_of(body)
                return (Started(told.get(CALL_PARAMETER, ""), parameters=told),)
            case "websocket:dtmf":
                return (read_key(text_at(body, "digit")),)
            case "websocket:notify" if name := text_at(object_at(body, "payload"), "name"):
                return (MarkReached(name),)
        return ()

    def audio(self, pcm: bytes) -> Message:
        return pcm

    def clear(self) -> Iterable[Message]:
        return (json.dumps({"action": "clear"}),)

    def message(self, message: WireMessage) -> Message | None:
        if not isinstance(message, MarkMessage):
            return None
        return json.dumps({"action": "notify", "payload": {"name": message.name}})

    def hang_up(self, reason: str) -> Iterable[Message]:
        return ()  # when the socket closes, the NCCO is over, and with it the call
