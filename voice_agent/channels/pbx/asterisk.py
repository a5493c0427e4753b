"""Asterisk's WebSocket channel driver (``chan_websocket``): binary media, control in texts beside it. Pure.

Texts are JSON from Asterisk 20.18, 22.8 and 23.2 on (``f(json)`` in the dial string), one plain line before that, which
knows no marks. Asterisk takes audio at any pace and plays it from a queue of 20 s, so speech is cut short by
``FLUSH_MEDIA``. Names and forms are those of docs.asterisk.org, "WebSocket Channel Driver".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from voice_agent.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode
from voice_agent.call.wire import MarkMessage, WireMessage, WireTraits
from voice_agent.channels.messages import BadMessage, read_object
from voice_agent.channels.streaming.fields import number_at, object_at, parameters_of, read_key, text_at
from voice_agent.channels.streaming.fields import whole_samples as _same
from voice_agent.channels.streaming.serializer import (
    DRAIN_MARK,
    FlowControl,
    Inbound,
    MarkReached,
    Media,
    Message,
    Started,
)

CHANNEL = "asterisk"
SUBPROTOCOL = "media"
PTIMES_MS = range(10, 121)
"""Frames that it may ask for. The longest, at 48 kHz, has 11,520 bytes: Asterisk closes on more than 65,500."""


class _Format(NamedTuple):
    rate: int
    sample_bytes: int
    decode: Callable[[bytes], bytes]
    encode: Callable[[bytes], bytes]


_FORMATS: Mapping[str, _Format] = {
    "ulaw": _Format(8000, 1, ulaw_decode, ulaw_encode),
    "alaw": _Format(8000, 1, alaw_decode, alaw_encode),
    "slin": _Format(8000, 2, _same, _same),
    "slin12": _Format(12000, 2, _same, _same),
    "slin16": _Format(16000, 2, _same, _same),
    "slin24": _Format(24000, 2, _same, _same),
    "slin32": _Format(32000, 2, _same, _same),
    "slin44": _Format(44100, 2, _same, _same),
    "slin48": _Format(48000, 2, _same, _same),
}


class AsteriskSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`. Format and control come with MEDIA_START."""

    def __init__(self) -> None:
        self._format: _Format | None = None
        self._json = False
        self._ptime_ms = 20
        self._drain = ""

    @property
    def traits(self) -> WireTraits:
        return WireTraits(CHANNEL, echoes_marks=self._json, can_send_digits=True)

    @property
    def rate(self) -> int:
        return self._format.rate if self._format else 8000

    @property
    def frame_ms(self) -> int:
        return self._ptime_ms

    def opening(self) -> Iterable[Message]:
        # Without effect unless the dial string leaves the answer to us: then nobody is answered by a full service.
        return (self._command("ANSWER"),)

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            return (Media(self._format.decode(message)),) if self._format and message else ()
        event, fields = _read_event(message)
        match event:
            case "MEDIA_START" if self._format is None:
                self._json = message.lstrip().startswith("{")
                return (self._start(fields),)
            case "DTMF_END":
                return (read_key(text_at(fields, "digit")),)
            case "MEDIA_XOFF":
                return (FlowControl(full=True),)
            case "MEDIA_XON":
                return (FlowControl(full=False),)
            case "MEDIA_MARK_PROCESSED" if name := text_at(fields, "correlation_id"):
                return (MarkReached(name),)
            case "QUEUE_DRAINED" if self._drain:
                return (MarkReached(self._drain),)
        return ()

    def _start(self, fields: Mapping[str, Any]) -> Started:
        name = text_at(fields, "format")
        if name not in _FORMATS:
            raise BadMessage("bad_format", f"The channel's codec must be one of {', '.join(_FORMATS)}.")
        chosen = _FORMATS[name]
        a_millisecond = chosen.rate * chosen.sample_bytes / 1000
        frame_bytes = number_at(fields, "optimal_frame_size", round(20 * a_millisecond))
        ptime_ms = frame_bytes / a_millisecond
        if int(ptime_ms) != ptime_ms or int(ptime_ms) not in PTIMES_MS:
            raise BadMessage("bad_format", "The size of a frame must be a whole number of milliseconds from 10 to 120.")
        self._format, self._ptime_ms = chosen, int(ptime_ms)
        variables = parameters_of(object_at(fields, "channel_variables"))
        call = text_at(fields, "channel_id") or text_at(fields, "connection_id")
        return Started(call, parameters=variables)

    def audio(self, pcm: bytes) -> Message:
        assert self._format is not None
        return self._format.encode(pcm)

    def clear(self) -> Iterable[Message]:
        return (self._command("FLUSH_MEDIA"),)

    def message(self, message: WireMessage) -> Message | None:
        if not self._json or not isinstance(message, MarkMessage):
            return None
        if message.name.startswith(DRAIN_MARK):
            self._drain = message.name
            return self._command("REPORT_QUEUE_DRAINED")
        return self._command("MARK_MEDIA", correlation_id=message.name)

    def hang_up(self, reason: str) -> Iterable[Message]:
        return (self._command("HANGUP"),)

    def _command(self, name: str, **fields: str) -> str:
        return json.dumps({"command": name, **fields}) if self._json else name


def _read_event(text: str) -> tuple[str, Mapping[str, Any]]:
    """Return an event's name and fields, from JSON or from a line such as ``DTMF_END digit:5``."""
    if text.lstrip().startswith("{"):
        body = read_object(text)
        return text_at(body, "event"), body
    event, *words = text.split()[:64] or ("",)
    pairs = (word.partition(":") for word in words)
    return event, {key: value for key, _, value in pairs}
