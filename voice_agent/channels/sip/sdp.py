"""Which audio both sides speak: session descriptions, offers and answers (RFC 4566, RFC 3264). Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

MAX_SDP_BYTES = 8 * 1024
MAX_LINES = 300
DTMF_TYPE = 101
"""Payload type of keys in our own offers; any dynamic one would do."""


class BadSdp(ValueError):
    """A description that cannot be understood, or offers nothing that we speak."""


class Direction(Enum):
    """Who sends, as the describing side sees it."""

    BOTH = "sendrecv"
    SEND = "sendonly"
    RECEIVE = "recvonly"
    NONE = "inactive"

    @property
    def answer(self) -> Direction:
        """What the other side answers."""
        return {Direction.SEND: Direction.RECEIVE, Direction.RECEIVE: Direction.SEND}.get(self, self)


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec of telephony.

    Attributes:
        name: As in the settings.
        encoding: As in SDP.
        payload_type: The static one (RFC 3551).
        rate: Samples per second.
        clock: Steps of the RTP timestamp per second: G.722's is 8000 by a mistake that became the standard.
    """

    name: str
    encoding: str
    payload_type: int
    rate: int
    clock: int = 8000


CODECS: Mapping[str, Codec] = {
    "g722": Codec("g722", "G722", 9, 16000),
    "pcmu": Codec("pcmu", "PCMU", 0, 8000),
    "pcma": Codec("pcma", "PCMA", 8, 8000),
}
_STATIC = {codec.payload_type: codec for codec in CODECS.values()}


@dataclass(frozen=True, slots=True)
class Media:
    """The audio line of a description.

    Attributes:
        address: Where its side wants audio, an IP address.
        formats: Payload type → encoding in capitals, in order of preference.
        position: Which of the media lines it is; the others are refused in an answer.
        others: Media type and formats of each line, in order, as they must come back.
    """

    address: str
    port: int
    formats: Mapping[int, str]
    direction: Direction = Direction.BOTH
    position: int = 0
    others: Sequence[tuple[str, str, str]] = ()

    @property
    def on_hold(self) -> bool:
        """Whether this side wants no audio; ``0.0.0.0`` is how older devices say so (RFC 2543)."""
        return self.direction in (Direction.SEND, Direction.NONE) or ipaddress.ip_address(self.address).is_unspecified


@dataclass(frozen=True, slots=True)
class Agreed:
    """What both sides will speak.

    Attributes:
        payload_type: Of the codec; both directions use the offer's.
        dtmf_type: Of keys as events; None where the far end has none.
        direction: Ours.
    """

    codec: Codec
    payload_type: int
    dtmf_type: int | None
    address: str
    port: int
    direction: Direction = Direction.BOTH
    offered: Media | None = field(default=None, repr=False)

    @property
    def held(self) -> bool:
        """The far end has put us on hold."""
        return self.offered is not None and self.offered.on_hold


def parse(body: bytes) -> Media:
    """Return the first audio line that can be used.

    Raises:
        BadSdp: There is none.
    """
    if len(body) > MAX_SDP_BYTES:
        raise BadSdp("a description that is too long")
    lines = body.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    if len(lines) > MAX_LINES or not lines[0].startswith("v=0"):
        raise BadSdp("no session description")
    session, sections = _sections(lines)
    others = [_media_line(section[0]) for section in sections]
    for position, (section, (kind, port, profile, formats)) in enumerate(zip(sections, others, strict=True)):
        if kind == "audio" and profile in ("RTP/AVP", "RTP/AVPF") and port:
            return _audio(session, section, position, port, formats, [(k, p, f) for k, _, p, f in others])
    raise BadSdp("no plain RTP audio in the description")


def agree(media: Media, codecs: Sequence[str], *, taken: Codec | None = None) -> Agreed:
    """Choose from an offer, or read the answer to ours.

    Args:
        codecs: Ours, best first.
        taken: The codec in use, which is kept where it is still offered.

    Raises:
        BadSdp: No codec is spoken by both.
    """
    wanted = [CODECS[name] for name in codecs]
    if taken is not None:
        wanted = [taken, *wanted]
    for codec in wanted:
        for payload_type, encoding in media.formats.items():
            if encoding == f"{codec.encoding}/{codec.clock}" or (codec.name == "g722" and encoding == "G722/16000"):
                events = (t for t, name in media.formats.items() if name == "TELEPHONE-EVENT/8000")
                address, port = media.address, media.port
                direction = media.direction.answer
                return Agreed(codec, payload_type, next(events, None), address, port, direction, media)
    raise BadSdp("no codec that both sides speak")


def answer(agreed: Agreed, address: str, port: int, session: tuple[int, int]) -> bytes:
    """Write the answer to the offer in ``agreed``. ``session``: its number and version."""
    assert agreed.offered is not None
    media = agreed.offered
    blocks = []
    for position, (kind, profile, formats) in enumerate(media.others):
        if position == media.position:
            blocks += _audio_lines(
                port, profile, [(agreed.payload_type, agreed.codec)], agreed.dtmf_type, agreed.direction
            )
        else:
            blocks.append(f"m={kind} 0 {profile} {formats}")
    return _written(address, session, blocks)


def offer(
    codecs: Sequence[str], address: str, port: int, session: tuple[int, int], direction: Direction = Direction.BOTH
) -> bytes:
    """Write an offer of ours."""
    spoken = [(CODECS[name].payload_type, CODECS[name]) for name in codecs]
    return _written(address, session, _audio_lines(port, "RTP/AVP", spoken, DTMF_TYPE, direction))


def moved(agreed: Agreed, media: Media, codecs: Sequence[str]) -> Agreed:
    """Return what is agreed after a new offer in the same call. Raises: BadSdp."""
    found = agree(media, codecs, taken=agreed.codec)
    if media.on_hold and ipaddress.ip_address(media.address).is_unspecified:
        # Where an old device holds, it says nothing of where audio went before.
        found = replace(found, address=agreed.address, port=agreed.port)
    return found


def _audio_lines(
    port: int, profile: str, spoken: Sequence[tuple[int, Codec]], dtmf_type: int | None, direction: Direction
) -> list[str]:
    types = [str(payload_type) for payload_type, _ in spoken] + ([str(dtmf_type)] if dtmf_type is not None else [])
    lines = [f"m=audio {port} {profile} {' '.join(types)}"]
    lines += [f"a=rtpmap:{payload_type} {codec.encoding}/{codec.clock}" for payload_type, codec in spoken]
    if dtmf_type is not None:
        lines += [f"a=rtpmap:{dtmf_type} telephone-event/8000", f"a=fmtp:{dtmf_type} 0-15"]
    return [*lines, "a=ptime:20", f"a={direction.value}"]


def _written(address: str, session: tuple[int, int], blocks: Sequence[str]) -> bytes:
    kind = f"IN IP{6 if ':' in address else 4} {address}"
    lines = ["v=0", f"o=- {session[0]} {session[1]} {kind}", "s=-", f"c={kind}", "t=0 0", *blocks]
    return ("\r\n".join(lines) + "\r\n").encode()


def _sections(lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    session, sections = list[str](), list[list[str]]()
    for line in lines:
        if line.startswith("m="):
            sections.append([])
        (sections[-1] if sections else session).append(line.rstrip())
    return session, sections


def _media_line(line: str) -> tuple[str, int, str, str]:
    parts = line[2:].split(" ", 3)
    port = parts[1].partition("/")[0] if len(parts) == 4 else ""
    if not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise BadSdp("a media line that cannot be read")
    return parts[0], int(port), parts[2], parts[3]


def _audio(
    session: Sequence[str],
    section: Sequence[str],
    position: int,
    port: int,
    formats: str,
    others: Sequence[tuple[str, str, str]],
) -> Media:
    named: dict[int, str] = {}
    for payload_type in formats.split()[:60]:
        if payload_type.isascii() and payload_type.isdecimal() and int(payload_type) < 128:
            static = _STATIC.get(int(payload_type))
            named[int(payload_type)] = f"{static.encoding}/{static.clock}" if static else ""
    for line in section:
        kind, _, value = line.partition(":")
        number, _, encoding = value.partition(" ")
        if kind == "a=rtpmap" and number.isascii() and number.isdecimal() and int(number) in named:
            named[int(number)] = "/".join(encoding.strip().upper().split("/")[:2])
    return Media(
        _connection(section) or _connection(session), port, named, _direction(session, section), position, others
    )


def _connection(lines: Sequence[str]) -> str:
    for line in lines:
        if line.startswith("c=IN IP"):
            try:
                return str(ipaddress.ip_address(line.split()[-1].partition("/")[0]))
            except ValueError:
                raise BadSdp("media at something that is no IP address") from None
    if lines and lines[0].startswith("m="):
        return ""
    raise BadSdp("a description that does not say where audio goes")


def _direction(session: Sequence[str], section: Sequence[str]) -> Direction:
    names = {f"a={direction.value}": direction for direction in Direction}
    for line in (*section, *session):
        if line in names:
            return names[line]
    return Direction.BOTH
