"""Genesys AudioHook, as its Audio Connector speaks it: PCMU at 8 kHz in binary messages, JSON beside it. Pure.

::

    Genesys   open ───────────▶ ping ─▶        close ─▶         Genesys opens, pings and closes;
    we               ◀─ opened      ◀─ pong          ◀─ closed  an end of ours is ``disconnect``, which it answers
                                                                with ``close``

Every message carries the number of the one before it plus one, and the last number of the other side. Names and forms
are those of Genesys's published reference implementations of AudioHook and of the Audio Connector.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from voice_agent.audio.g711 import ulaw_decode, ulaw_encode
from voice_agent.call.wire import WireMessage, WireTraits
from voice_agent.channels.messages import BadMessage, Mute, read_object
from voice_agent.channels.streaming.fields import object_at, parameters_of, read_key, text_at
from voice_agent.channels.streaming.serializer import Answer, Farewell, Inbound, Media, Message, Started

CHANNEL = "genesys"
VERSION = "2"
RATE = 8000
_NOBODY = str(uuid.UUID(int=0))
"""The conversation of a connection that only tries whether we are there."""


class GenesysSerializer:
    """Implements `voice_agent.channels.streaming.serializer.Serializer`, `FarEndCloses` and `Stamps`.

    Args:
        session: The session that the request was signed for, or "" to take the first message's.
    """

    rate = RATE
    frame_ms = 20
    far_end_closes = True

    def __init__(self, session: str = "", organization: str = "") -> None:
        self.traits = WireTraits(CHANNEL, can_send_digits=True)
        self._session, self._organization = session, organization
        self._sent = self._received = 0
        self._channels, self._ours = 1, 0
        self._media: Mapping[str, Any] = {}
        self._open = self._on_call = False

    def stamp(self, text: str) -> str:
        """Number a message as it leaves."""
        self._sent += 1
        numbers = {"version": VERSION, "id": self._session, "seq": self._sent, "clientseq": self._received}
        return json.dumps(numbers)[:-1] + ", " + text[1:]

    def opening(self) -> Iterable[Message]:
        self._on_call = True
        return (_message("opened", {"startPaused": False, "media": [self._media]}),)

    def read(self, message: Message) -> Sequence[Inbound]:
        if isinstance(message, bytes):
            codes = message[self._ours :: self._channels] if self._channels > 1 else message
            return (Media(ulaw_decode(codes)),) if self._open and codes else ()
        try:
            body = self._checked(read_object(message))
        except BadMessage as fault:
            return (Farewell(_message("disconnect", {"reason": "error", "info": fault.message}), "disconnected"),)
        parameters = object_at(body, "parameters")
        match text_at(body, "type"):
            case "open" if not self._open:
                return self._opened(parameters)
            case "ping":
                return (Answer(_message("pong", {})),)
            case "close":
                return (Farewell(_message("closed", {})),)
            case "dtmf":
                return (read_key(text_at(parameters, "digit")),)
            case "paused":
                return (Mute(True),)
            case "resumed":
                return (Mute(False),)
        return ()

    def _checked(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a message whose head is right. Raises `BadMessage` for what ends a session by the protocol."""
        if body.get("version") != VERSION:
            raise BadMessage("bad_version", f"Only version {VERSION} is spoken here.")
        if body.get("seq") != self._received + 1 or isinstance(body["seq"], bool):
            raise BadMessage("bad_sequence", "A message is missing or came twice.")
        known = body.get("serverseq")
        if isinstance(known, bool) or not isinstance(known, int) or not 0 <= known <= self._sent:
            raise BadMessage("bad_sequence", "serverseq is a number that was never sent.")
        session = text_at(body, "id")
        if not session or (self._session and session != self._session):
            raise BadMessage("bad_session", "The message is of another session.")
        self._received, self._session = self._received + 1, session
        return body

    def _opened(self, parameters: Mapping[str, Any]) -> Sequence[Inbound]:
        if self._organization and text_at(parameters, "organizationId") != self._organization:
            return (_unauthorized(),)
        call, participant = text_at(parameters, "conversationId"), object_at(parameters, "participant")
        if call == _NOBODY:
            return (Answer(_message("opened", {"startPaused": False, "media": []})),)
        try:
            self._choose(parameters.get("media"))
        except BadMessage as fault:
            return (Farewell(_message("disconnect", {"reason": "error", "info": fault.message}), "disconnected"),)
        self._open = True
        told = parameters_of(object_at(parameters, "customConfig")) | parameters_of(
            object_at(parameters, "inputVariables")
        )
        return (Started(call, text_at(participant, "ani"), text_at(participant, "dnis"), told),)

    def _choose(self, offered: object) -> None:
        """Take the caller alone where that is offered, else pick the caller out of both."""
        usable = [
            media
            for media in (offered if isinstance(offered, list) else [])
            if isinstance(media, dict)
            and (media.get("format"), media.get("rate")) == ("PCMU", RATE)
            and isinstance(media.get("channels"), list)
            and "external" in media["channels"]
        ]
        if not usable:
            raise BadMessage("bad_format", "Audio must be PCMU at 8000 Hz, with the external channel.")
        self._media = min(usable, key=lambda media: len(media["channels"]))
        channels = self._media["channels"]
        self._channels, self._ours = len(channels), channels.index("external")

    def audio(self, pcm: bytes) -> Message:
        return ulaw_encode(pcm)

    def clear(self) -> Iterable[Message]:
        return (_message("event", {"entities": [{"type": "barge_in", "data": {}}]}),)

    def message(self, message: WireMessage) -> Message | None:
        return None

    def hang_up(self, reason: str) -> Iterable[Message]:
        word = "completed" if self._on_call and reason != "internal_error" else "error"
        return (_message("disconnect", {"reason": word, "info": reason}),)


def _unauthorized() -> Farewell:
    return Farewell(_message("disconnect", {"reason": "unauthorized"}), "disconnected")


def _message(kind: str, parameters: Mapping[str, Any]) -> str:
    """Write a message without its head, which it gets when it leaves (`GenesysSerializer.stamp`)."""
    return json.dumps({"type": kind, "parameters": parameters})
