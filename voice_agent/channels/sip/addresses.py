"""What stands in SIP headers: URIs, name-addresses, and the Via of a hop (RFC 3261, sections 19.1 and 20). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

MAX_VALUE_CHARS = 2048
"""Longer header values are refused."""

_URI = re.compile(
    r"(?P<scheme>sips?):(?:(?P<user>[^@<>\s\"]{1,256})@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::(?P<port>\d{1,5}))?"
    r"(?P<parameters>(?:;[^;?<>\s\"]*)*)(?:\?[^<>\s\"]*)?"
)
_VIA = re.compile(
    r"SIP\s*/\s*2\.0\s*/\s*(?P<transport>[A-Za-z-]{2,8})\s+"
    r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?:\s*:\s*(?P<port>\d{1,5}))?\s*(?P<parameters>(?:;.*)?)",
    re.DOTALL,
)


class BadSip(ValueError):
    """A message or a part of it that cannot be understood. Says which part, never its content."""


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    port = int(text)
    if not 0 < port <= 65_535:
        raise BadSip("a port that does not exist")
    return port


@dataclass(frozen=True, slots=True)
class SipUri:
    """``sip:user@host:port;parameters``. Headers in a URI (``?``) are dropped: nobody may slip them in."""

    host: str
    user: str = ""
    port: int | None = None
    scheme: str = "sip"
    parameters: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def parse(cls, text: str) -> SipUri:
        """Raises: BadSip."""
        match = _URI.fullmatch(text.strip()) if len(text) <= MAX_VALUE_CHARS else None
        if match is None:
            raise BadSip("an address that is no SIP URI")
        parameters = parse_parameters(match["parameters"])
        return cls(
            match["host"].lower(), match["user"] or "", _port(match["port"]), match["scheme"], tuple(parameters.items())
        )

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}:{user}{self.host}{port}{format_parameters(self.parameters)}"

    @property
    def name(self) -> str:
        """The user part without a password."""
        return self.user.partition(":")[0].partition(";")[0]


@dataclass(frozen=True, slots=True)
class NameAddress:
    """``"Display" <sip:…>;tag=…``, as in From, To, Contact and Route. The display name is dropped."""

    uri: SipUri
    parameters: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> NameAddress:
        """Raises: BadSip."""
        if len(text) > MAX_VALUE_CHARS:
            raise BadSip("an address that is too long")
        start = _outside_quotes(text, "<")
        if start < 0:
            uri, _, rest = text.partition(";")
            return cls(SipUri.parse(uri), parse_parameters(";" + rest if rest else ""))
        end = text.find(">", start)
        if end < 0:
            raise BadSip("an address without its closing bracket")
        return cls(SipUri.parse(text[start + 1 : end]), parse_parameters(text[end + 1 :]))

    @property
    def tag(self) -> str:
        return self.parameters.get("tag") or ""

    def tagged(self, tag: str) -> NameAddress:
        """Return it with this tag."""
        return replace(self, parameters={**self.parameters, "tag": tag})

    def __str__(self) -> str:
        return f"<{self.uri}>{format_parameters(self.parameters.items())}"


@dataclass(frozen=True, slots=True)
class Via:
    """One hop that a message has taken, and where its answer goes."""

    host: str
    port: int | None
    transport: str = "UDP"
    parameters: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Via:
        """Raises: BadSip."""
        match = _VIA.fullmatch(text.strip()) if len(text) <= MAX_VALUE_CHARS else None
        if match is None:
            raise BadSip("a Via that cannot be read")
        parameters = parse_parameters(match["parameters"])
        return cls(match["host"].lower(), _port(match["port"]), match["transport"].upper(), parameters)

    @property
    def branch(self) -> str:
        return self.parameters.get("branch") or ""

    def seen_from(self, source: tuple[str, int]) -> Via:
        """Return it with what the receiver knows of the sender (RFC 3581)."""
        known: dict[str, str | None] = {**self.parameters, "received": source[0]}
        if "rport" in known:
            known["rport"] = str(source[1])
        return replace(self, parameters=known)

    def answer_to(self, source: tuple[str, int]) -> tuple[str, int]:
        """Return where the response to a message from ``source`` goes."""
        return source if "rport" in self.parameters else (source[0], self.port or 5060)

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"SIP/2.0/{self.transport} {self.host}{port}{format_parameters(self.parameters.items())}"


def split_list(value: str) -> list[str]:
    """Split a header value at the commas that stand neither in quotes nor in angle brackets."""
    parts, start, quoted, depth, escaped = list[str](), 0, False, 0, False
    for at, character in enumerate(value):
        if escaped:
            escaped = False
        elif quoted:
            quoted, escaped = character != '"', character == "\\"
        elif character == '"':
            quoted = True
        elif character in "<>":
            depth = 1 if character == "<" else 0
        elif character == "," and not depth:
            parts.append(value[start:at])
            start = at + 1
    parts.append(value[start:])
    return [stripped for part in parts if (stripped := part.strip())]


def parse_parameters(text: str) -> dict[str, str | None]:
    """Read ``;name=value;flag``; later ones of a name do not count. Raises: BadSip."""
    found: dict[str, str | None] = {}
    for part in text.split(";")[1:]:
        name, sign, value = part.partition("=")
        if name := name.strip().lower():
            found.setdefault(name, value.strip().strip('"') if sign else None)
    if text.partition(";")[0].strip():
        raise BadSip("something before the parameters of an address")
    return found


def format_parameters(parameters: Iterable[tuple[str, str | None]]) -> str:
    """Write parameters as they follow an address."""
    return "".join(f";{name}" if value is None else f";{name}={value}" for name, value in parameters)


def _outside_quotes(text: str, wanted: str) -> int:
    quoted = escaped = False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            quoted, escaped = character != '"', character == "\\"
        elif character == '"':
            quoted = True
        elif character == wanted:
            return at
    return -1
