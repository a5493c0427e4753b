"""FreeSWITCH's ``mod_audio_stream``: L16 comes in binary messages, audio goes back as base64 in JSON. Pure.

The module plays what comes and passes every other text on as an event (``mod_audio_stream::json``). It has no message
that drops audio, ends the call or carries a key: a script of the exchange does the first two when it sees ``clear`` and
``hangup``, and sends keys as texts. So nothing is sent ahead of its time. Names and forms are those of the module's
README.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from voice_agent.call.wire import WireMessage, WireTraits
from voice_agent.channels.messages import CLEAR, BadMessage, CallerHangUp, hang_up, read_object
from voice_agent.channels.streaming.fields import parameters_of, read_key, text_at, whole_samples
from voice_agent.channels.streaming.serializer import Inbound, Media, Message, Started

CHANNEL = "freeswitch"
RATES = (8000, 16000)
"""What ``uuid_audio_stream UUID start URL mono RATE`` offers."""


class FreeSwitchSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`."""

    frame_ms = 20

    def __init__(self, rate: int = RATES[0]) -> None:
        """Args: ``rate`` in Hz, one of `RATES`: the stream itself does not tell."""
        self.traits = WireTraits(CHANNEL, can_send_digits=True)
        self.rate = rate
        self._started = False
        self._head = f'{{"type":"streamAudio","data":{{"audioDataType":"raw","sampleRate":{rate},"audioData":"'

    def opening(self) -> Iterable[Message]:
        return ()

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            media = (Media(whole_samples(message)),) if message else ()
            return media if self._started else (self._start(""), *media)
        if not self._started:
            return (self._start(message),)
        try:
            body = read_object(message)
        except BadMessage:
            return ()  # whatever ``send_text`` and ``stop`` were given
        match text_at(body, "type"):
            case "dtmf":
                return (read_key(text_at(body, "digit")),)
            case "hangup":
                return (CallerHangUp(),)
        return ()

    def _start(self, metadata: str) -> Started:
        """The first text is the metadata of ``start``, in whatever form; a stream without any begins with audio."""
        self._started = True
        try:
            body = read_object(metadata)
        except BadMessage:
            body = {}
        return Started(text_at(body, "uuid"), text_at(body, "caller"), text_at(body, "called"), parameters_of(body))

    def audio(self, pcm: bytes) -> Message:
        return self._head + base64.b64encode(pcm).decode("ascii") + '"}}'

    def clear(self) -> Iterable[Message]:
        return (CLEAR,)

    def message(self, message: WireMessage) -> Message | None:
        return None

    def hang_up(self, reason: str) -> Iterable[Message]:
        return (hang_up(reason),)
