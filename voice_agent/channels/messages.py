"""The JSON messages of our own wires, both ways. Pure text in, typed messages out, and the reverse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.call.wire import (
    ErrorMessage,
    EventMessage,
    HeardMessage,
    MarkMessage,
    MetricsMessage,
    StateMessage,
    TranscriptMessage,
    WireMessage,
)
from voice_agent.digits import KEYS

MAX_TEXT = 2000
"""Characters of one typed utterance."""
MAX_PLAYED_MS = 86_400_000

_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class TypedText:
    """A typed utterance: stripped, not empty, at most `MAX_TEXT` characters."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """One key of `KEYS`."""

    digit: str


@dataclass(frozen=True, slots=True)
class Played:
    """The far end has played this much of the current reply, in milliseconds."""

    ms: float


@dataclass(frozen=True, slots=True)
class Mute:
    """The caller has switched their microphone off or on."""

    muted: bool


@dataclass(frozen=True, slots=True)
class CallerHangUp:
    """The caller hangs up."""


ClientMessage = TypedText | Key | Played | Mute | CallerHangUp


class BadMessage(Exception):
    """A client's message cannot be used. Carries what is told to the client; never repeats its words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def whole(text: str) -> str:
    """Replace halves of characters, which JSON can carry (``"\\ud800"``) and UTF-8 cannot."""
    return _HALF_CHARACTERS.sub("\ufffd", text)


def typed(text: str) -> str:
    """Return what somebody typed as plain text: without control characters, which belong to terminals."""
    return whole(_CONTROLS.sub("", text)).strip()


def read_object(text: str) -> Mapping[str, Any]:
    """Return the JSON object of a text message.

    Raises:
        BadMessage: It is none.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise BadMessage("not_json", "A text message must be a JSON object.") from None
    if not isinstance(body, dict):
        raise BadMessage("not_json", "A text message must be a JSON object.")
    return body


def decode(text: str) -> ClientMessage:
    """Read one text message of a client.

    Raises:
        BadMessage: It is no JSON object, of an unknown type, or one of its fields is wrong.
    """
    body = read_object(text)
    kind = body.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise BadMessage("unknown_message", f'"type" must be one of {", ".join(_READERS)}.')
    return read(body)


def _typed(body: Mapping[str, Any]) -> TypedText:
    text = body.get("text")
    words = typed(text) if isinstance(text, str) else ""
    if not words:
        raise BadMessage("bad_message", '"text" must be a string that is not empty.')
    if len(words) > MAX_TEXT:
        raise BadMessage("bad_message", f'"text" may have at most {MAX_TEXT} characters.')
    return TypedText(words)


def _key(body: Mapping[str, Any]) -> Key:
    digit = body.get("digit")
    if not isinstance(digit, str) or len(digit) != 1 or digit.upper() not in KEYS:
        raise BadMessage("bad_message", f'"digit" must be one of {KEYS}.')
    return Key(digit.upper())


def _played(body: Mapping[str, Any]) -> Played:
    ms = body.get("ms")
    # A comparison is safe with every number JSON can hold; arithmetic is not: an integer may exceed any float.
    if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 <= ms <= MAX_PLAYED_MS:
        raise BadMessage("bad_message", f'"ms" must be a number of milliseconds from 0 to {MAX_PLAYED_MS}.')
    return Played(float(ms))


def _mute(body: Mapping[str, Any]) -> Mute:
    muted = body.get("muted")
    if not isinstance(muted, bool):
        raise BadMessage("bad_message", '"muted" must be true or false.')
    return Mute(muted)


def _hang_up(body: Mapping[str, Any]) -> CallerHangUp:
    return CallerHangUp()


_READERS: dict[str, Callable[[Mapping[str, Any]], ClientMessage]] = {
    "text": _typed,
    "dtmf": _key,
    "played": _played,
    "mute": _mute,
    "hangup": _hang_up,
}


def encode(message: WireMessage) -> str:
    """Write one message for a client."""
    match message:
        case TranscriptMessage(role, text, final, heard):
            body: dict[str, Any] = {"type": "transcript", "role": role, "text": text, "final": final}
            if heard is not None:
                body["heard"] = heard
        case MarkMessage(name):
            body = {"type": "mark", "name": name}
        case EventMessage(event):
            body = {"type": "event", "event": event}
        case MetricsMessage(turn_id, timeline):
            body = {"type": "metrics", "turn_id": turn_id, "timeline": timeline}
        case StateMessage(state):
            body = {"type": "state", "state": state}
        case HeardMessage(text):
            body = {"type": "heard", "text": text}
        case ErrorMessage(code, text):
            body = {"type": "error", "code": code, "message": text}
    return whole(json.dumps(body, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    """Events hold read-only mappings and tuples; anything stranger is shown as text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def ready(conversation_id: str, rate: int) -> str:
    """Return the message that the call is admitted; ``rate`` in Hz."""
    return json.dumps({"type": "ready", "conversation": conversation_id, "rate": rate})


CLEAR = json.dumps({"type": "clear"})


def hang_up(reason: str) -> str:
    """Return the message that the agent ends the call."""
    return json.dumps({"type": "hangup", "reason": reason})
