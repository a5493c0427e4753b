"""A browser's offer as it comes by HTTP, and the SDP text around it. Pure.

The body of ``POST /offer`` is ``{"sdp": "…", "type": "offer"}`` and, where wanted, ``"conversation": "…"``,
``"events": true``, ``"metrics": true``, ``"states": true``, ``"resumes": "CALL"``. Limits stand before the SDP parser:
each media section may open sockets, each candidate is an address that connectivity checks are sent to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.channels import identifiers
from voice_agent.channels.tokens import Grant

MAX_BODY_BYTES = 64 * 1024
MAX_SECTIONS = 8
"""Media sections of an offer: audio, the data channel, and what a page adds by mistake."""
MAX_CANDIDATES = 40
OPUS_WISHES = "minptime=20;useinbandfec=1;maxplaybackrate=16000;sprop-maxcapturerate=16000;maxaveragebitrate=32000"
"""What the browser is asked to send: one channel of speech at the rate that is listened to."""

_OPUS = re.compile(r"a=rtpmap:(\d+) opus/48000/2", re.IGNORECASE)
_END_OF_CANDIDATES = "a=end-of-candidates"


class BadOffer(Exception):
    """An offer cannot be used. Carries what is told to the client."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True, slots=True)
class Offer:
    """A caller's offer. ``sdp`` is within the limits, and not yet parsed.

    Attributes:
        resumes: The caller's call on a connection that it has lost, which may not have been noticed here.
    """

    sdp: str
    conversation_id: str
    events: bool
    metrics: bool
    states: bool = False
    resumes: str = ""


def read_offer(body: bytes, grant: Grant | None = None) -> Offer:
    """Read the body of ``POST /offer``.

    Args:
        grant: What the caller's token stands for; it says which conversation.

    Raises:
        BadOffer: It is no JSON object with an SDP offer in it, or beyond the limits.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise BadOffer(400, "bad_body", 'The body must be a JSON object with "sdp" and "type".')
    if given.get("type") != "offer":
        raise BadOffer(422, "bad_offer", '"type" must be "offer".')
    conversation = identifiers.chosen(given.get("conversation"), grant)
    if conversation is None:
        rule = identifiers.RULE if grant is None else "left out, or the one that the token is for"
        raise BadOffer(422, "bad_conversation", f'"conversation" must be {rule}.')
    return Offer(
        _checked(given.get("sdp")),
        conversation,
        _flag(given, "events"),
        _flag(given, "metrics"),
        _flag(given, "states"),
        str(given.get("resumes") or ""),
    )


def _flag(given: Mapping[str, Any], name: str) -> bool:
    return given.get(name) in (True, 1, "1", "true")


def _checked(sdp: Any) -> str:
    if not isinstance(sdp, str) or not sdp.startswith("v=0"):
        raise BadOffer(422, "bad_sdp", '"sdp" must be the text of a session description, which begins with "v=0".')
    lines = sdp.splitlines()
    sections = [line for line in lines if line.startswith("m=")]
    if not any(line.startswith("m=audio ") for line in sections):
        raise BadOffer(422, "no_audio", "The offer has no audio: add an audio track or transceiver before making it.")
    if not _OPUS.search(sdp):
        raise BadOffer(422, "no_opus", "The offer must allow the Opus codec (opus/48000/2).")
    if len(sections) > MAX_SECTIONS:
        raise BadOffer(422, "too_many_media", f"The offer may have at most {MAX_SECTIONS} media sections.")
    if sum(line.startswith("a=candidate:") for line in lines) > MAX_CANDIDATES:
        raise BadOffer(422, "too_many_candidates", f"The offer may have at most {MAX_CANDIDATES} ICE candidates.")
    return _without_names(lines)


def _without_names(lines: list[str]) -> str:
    """Leave out candidates that are names instead of addresses.

    Browsers hide addresses behind names that only multicast resolves. They reach us all the same, and are then
    known by where they come from; looking the names up would hold up the answer and speak to the whole network.
    """
    kept = [line for line in lines if not line.startswith("a=candidate:") or _is_address(line)]
    if len(kept) < len(lines):
        # With no address left, the end of candidates would be the end of trying.
        kept = [line for line in kept if line != _END_OF_CANDIDATES]
    return "\r\n".join(kept) + "\r\n"


def _is_address(candidate: str) -> bool:
    fields = candidate.split()
    return len(fields) > 4 and re.fullmatch(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", fields[4]) is not None


def finish_answer(sdp: str, public_address: str | None = None) -> str:
    """Ask for speech instead of music, and name the address that callers reach this machine by.

    Args:
        public_address: Put in place of the addresses of this machine's own candidates.
    """
    lines: list[str] = []
    for line in sdp.splitlines():
        opus = _OPUS.match(line)
        if line.startswith("a=candidate:") and public_address and " typ host" in line:
            fields = line.split()
            fields[4] = public_address
            line = " ".join(fields)
        lines.append(line)
        if opus:
            lines.append(f"a=fmtp:{opus[1]} {OPUS_WISHES}")
    return "\r\n".join(lines) + "\r\n"
