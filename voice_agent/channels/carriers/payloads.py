"""Audio as carriers write it into JSON: Base64. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from voice_agent.audio.g711 import ulaw_decode
from voice_agent.channels.messages import BadMessage
from voice_agent.channels.streaming.serializer import Media

_STREAM_ID = re.compile(r"[A-Za-z0-9_.:+/=-]{1,200}")


def encoded(audio: bytes) -> str:
    """Return bytes as Base64."""
    return base64.b64encode(audio).decode("ascii")


def read_payload(media: Mapping[str, Any]) -> bytes:
    """Return what ``payload`` holds.

    Raises:
        BadMessage: It is missing, or no Base64.
    """
    payload = media.get("payload")
    if not isinstance(payload, str):
        raise BadMessage("bad_audio", "Audio must be Base64.")
    try:
        return base64.b64decode(payload, validate=True)
    except (ValueError, binascii.Error):
        raise BadMessage("bad_audio", "Audio must be Base64.") from None


def read_audio(media: Mapping[str, Any], decode: Callable[[bytes], bytes]) -> Sequence[Media]:
    """Return caller audio, or nothing where a message carries none. Raises as `read_payload` and ``decode``."""
    codes = read_payload(media)
    return (Media(decode(codes)),) if codes else ()


def read_ulaw(media: Mapping[str, Any]) -> Sequence[Media]:
    """Return caller audio in G.711 µ-law."""
    return read_audio(media, ulaw_decode)


def stream_id(text: str) -> str:
    """Return the id of a stream, which goes back as it came.

    Raises:
        BadMessage: It holds characters that no id has.
    """
    if not _STREAM_ID.fullmatch(text):
        raise BadMessage("bad_start", "The stream has no id.")
    return text
