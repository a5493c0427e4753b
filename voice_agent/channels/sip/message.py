"""SIP messages: reading them with limits, and writing them (RFC 3261, section 7). Pure.

A message that cannot be read raises `BadSip`; what is read has all headers that every message must have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from voice_agent.channels.sip.addresses import BadSip, NameAddress, Via, split_list

MAX_MESSAGE_BYTES = 16 * 1024
MAX_HEADERS = 120
VERSION = "SIP/2.0"

COMPACT = {
    "i": "call-id",
    "m": "contact",
    "e": "content-encoding",
    "l": "content-length",
    "c": "content-type",
    "f": "from",
    "s": "subject",
    "k": "supported",
    "t": "to",
    "v": "via",
    "o": "event",
    "r": "refer-to",
    "b": "referred-by",
    "x": "session-expires",
}
LISTS = frozenset({"via", "route", "record-route", "contact", "require", "supported", "allow", "p-asserted-identity"})
"""Headers that may carry several values in one line."""
REASONS = {
    100: "Trying",
    180: "Ringing",
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    415: "Unsupported Media Type",
    420: "Bad Extension",
    480: "Temporarily Unavailable",
    481: "Call/Transaction Does Not Exist",
    482: "Loop Detected",
    486: "Busy Here",
    487: "Request Terminated",
    488: "Not Acceptable Here",
    489: "Bad Event",
    491: "Request Pending",
    500: "Server Internal Error",
    503: "Service Unavailable",
    603: "Decline",
}

_REQUEST_LINE = re.compile(r"([A-Z]{2,20}) (\S{1,2048}) SIP/2\.0")
_STATUS_LINE = re.compile(r"SIP/2\.0 ([1-6]\d\d)(?: ([^\r\n]{0,200}))?")
_NAME = re.compile(r"[A-Za-z0-9!%*_+`'~.-]{1,64}")
_CSEQ = re.compile(r"(\d{1,10})\s+([A-Z]{2,20})")
_FOLD = re.compile(r"\r?\n[ \t]+")


class Headers:
    """Header lines in order; names in small letters, in their long form."""

    __slots__ = ("_lines",)

    def __init__(self, lines: Iterable[tuple[str, str]] = ()) -> None:
        self._lines = tuple((name.lower(), value) for name, value in lines)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._lines)

    def get(self, name: str) -> str:
        """Return the first value of a header, or ``""``."""
        return next((value for known, value in self._lines if known == name), "")

    def all(self, name: str) -> list[str]:
        """Return every value of a header, those that share a line included."""
        values = (value for known, value in self._lines if known == name)
        return [one for value in values for one in (split_list(value) if name in LISTS else [value])]


@dataclass(frozen=True)
class _Message:
    headers: Headers
    body: bytes = field(default=b"", repr=False)

    @cached_property
    def via(self) -> Via:
        """The hop that the message came from."""
        values = self.headers.all("via")
        if not values:
            raise BadSip("no Via")
        return Via.parse(values[0])

    @cached_property
    def sender(self) -> NameAddress:
        """From."""
        return NameAddress.parse(self.headers.get("from"))

    @cached_property
    def receiver(self) -> NameAddress:
        """To."""
        return NameAddress.parse(self.headers.get("to"))

    @property
    def call_id(self) -> str:
        return self.headers.get("call-id")

    @cached_property
    def cseq(self) -> tuple[int, str]:
        """Number and method."""
        match = _CSEQ.fullmatch(self.headers.get("cseq"))
        if match is None or int(match[1]) >= 1 << 31:
            raise BadSip("no CSeq that can be read")
        return int(match[1]), match[2]

    def check(self) -> None:
        """Raises: BadSip: A header that every message has is missing or cannot be read."""
        if not 0 < len(self.call_id) <= 256:
            raise BadSip("no Call-ID")
        if not self.sender.tag and not isinstance(self, Response):
            raise BadSip("a From without a tag")
        assert self.via and self.receiver and self.cseq


@dataclass(frozen=True)
class Request(_Message):
    method: str = ""
    uri: str = ""

    def check(self) -> None:
        super().check()
        if self.cseq[1] != self.method:
            raise BadSip("a CSeq of another method")

    def __bytes__(self) -> bytes:
        return _written(f"{self.method} {self.uri} {VERSION}", self.headers, self.body)

    def respond(self, status: int, *more: tuple[str, str], tag: str = "", body: bytes = b"") -> Response:
        """Return a response to this request.

        Args:
            more: Further headers.
            tag: Ours, where the request has none of us yet.
        """
        to = self.receiver if self.receiver.tag or not tag else self.receiver.tagged(tag)
        kept = [("via", value) for value in self.headers.all("via")]
        if status < 300:
            kept += [("record-route", value) for value in self.headers.all("record-route")]
        named = [("from", self.headers.get("from")), ("to", str(to)), ("call-id", self.call_id)]
        lines = [*kept, *named, ("cseq", self.headers.get("cseq")), *more]
        return Response(Headers(lines), body, status, REASONS.get(status, "Unknown"))

    def received_from(self, source: tuple[str, int]) -> Request:
        """Return the request with the address it came from in its Via."""
        vias = self.headers.all("via")
        others = [(name, value) for name, value in self.headers if name != "via"]
        lines = [("via", str(self.via.seen_from(source))), *(("via", value) for value in vias[1:]), *others]
        return Request(Headers(lines), self.body, self.method, self.uri)


@dataclass(frozen=True)
class Response(_Message):
    status: int = 0
    reason: str = ""

    def __bytes__(self) -> bytes:
        return _written(f"{VERSION} {self.status} {self.reason}", self.headers, self.body)


def parse(data: bytes) -> Request | Response:
    """Read one datagram.

    Raises:
        BadSip: It is no whole SIP message, or lacks what every message must have.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise BadSip("a message that is too long")
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator:
        head, separator, body = data.partition(b"\n\n")
    if not separator:
        raise BadSip("a message without an end of its headers")
    try:
        text = _FOLD.sub(" ", head.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadSip("headers that are no UTF-8") from None
    first, *lines = text.replace("\r\n", "\n").lstrip("\n").split("\n")
    if len(lines) > MAX_HEADERS or "\r" in text.replace("\r\n", "") or "\0" in text:
        raise BadSip("too many headers, or control characters in them")
    headers = Headers(_header(line) for line in lines)
    body = body[: _length(headers, len(body))]
    message: Request | Response
    if match := _REQUEST_LINE.fullmatch(first):
        message = Request(headers, body, match[1], match[2])
    elif match := _STATUS_LINE.fullmatch(first):
        message = Response(headers, body, int(match[1]), match[2] or "")
    else:
        raise BadSip("a first line that is neither request nor response")
    message.check()
    return message


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    name = name.rstrip(" \t")
    if not colon or not _NAME.fullmatch(name):
        raise BadSip("a line that is no header")
    name = name.lower()
    return COMPACT.get(name, name), value.strip()


def _length(headers: Headers, available: int) -> int:
    given = headers.get("content-length")
    if not given:
        return available
    if not given.isascii() or not given.isdecimal() or len(given) > 6 or int(given) > available:
        raise BadSip("a body that is shorter than announced")
    return int(given)


def _written(first: str, headers: Headers, body: bytes) -> bytes:
    lines = [first, *(f"{_long(name)}: {value}" for name, value in headers if name != "content-length")]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header value with a line break")
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _long(name: str) -> str:
    return {"call-id": "Call-ID", "cseq": "CSeq", "www-authenticate": "WWW-Authenticate"}.get(name, name.title())
