"""jambonz's ``listen`` verb with streaming audio both ways: L16 in binary messages, JSON beside it. Pure.

The first text says which call it is. Marks come back as they are played, or as cleared. Names and forms are those of
docs.jambonz.org, "listen".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from voice_agent.call.wire import MarkMessage, WireMessage, WireTraits
from voice_agent.channels.messages import BadMessage, read_object
from voice_agent.channels.streaming.fields import (
    number_at,
    object_at,
    parameters_of,
    read_key,
    text_at,
    whole_samples,
)
from voice_agent.channels.streaming.serializer import Inbound, MarkReached, Media, Message, Started

CHANNEL = "jambonz"
SUBPROTOCOL = "audio.jambonz.org"
RATES = (8000, 16000, 24000, 48000)
_CLEAR, _HANG_UP = json.dumps({"type": "killAudio"}), json.dumps({"type": "disconnect"})


class JambonzSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`. Both directions have the rate of the first."""

    frame_ms = 20

    def __init__(self) -> None:
        self.traits = WireTraits(CHANNEL, echoes_marks=True, can_send_digits=True)
        self.rate = RATES[0]
        self._started = False

    def opening(self) -> Iterable[Message]:
        return ()

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            return (Media(whole_samples(message)),) if message else ()
        body = read_object(message)
        if not self._started:
            return (self._start(body),)
        if body.get("event") == "dtmf":
            return (read_key(text_at(body, "dtmf")),)
        data = object_at(body, "data")
        if body.get("type") == "mark" and data.get("event") == "playout" and (name := text_at(data, "name")):
            return (MarkReached(name),)
        return ()

    def _start(self, body: object) -> Started:
        assert isinstance(body, dict)
        rate = number_at(body, "sampleRate", RATES[0])
        if rate not in RATES:
            raise BadMessage("bad_rate", f'"sampleRate" must be one of {", ".join(map(str, RATES))}.')
        if text_at(body, "mixType") not in ("", "mono"):
            raise BadMessage("bad_format", '"mixType" must be "mono".')
        self.rate, self._started = rate, True
        return Started(text_at(body, "callSid"), text_at(body, "from"), text_at(body, "to"), parameters_of(body))

    def audio(self, pcm: bytes) -> Message:
        return pcm

    def clear(self) -> Iterable[Message]:
        return (_CLEAR,)

    def message(self, message: WireMessage) -> Message | None:
        if not isinstance(message, MarkMessage):
            return None
        return json.dumps({"type": "mark", "data": {"name": message.name}})

    def hang_up(self, reason: str) -> Iterable[Message]:
        return (_HANG_UP,)
