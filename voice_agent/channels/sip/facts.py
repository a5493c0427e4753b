"""What an INVITE says of who calls and whom. Pure."""

from __future__ import annotations

import re

from voice_agent.channels.sip.addresses import BadSip, NameAddress
from voice_agent.channels.sip.message import Request

_NUMBER = re.compile(r"\+?[0-9*#().-]{2,32}")


def facts_of(request: Request) -> dict[str, str]:
    """Return what an INVITE says of who calls and whom."""
    asserted = request.headers.all("p-asserted-identity")
    try:
        caller = NameAddress.parse(asserted[0]) if asserted else request.sender
    except BadSip:
        caller = request.sender
    found = {"caller_number": _named(caller), "called_number": _named(request.receiver)}
    return {name: value for name, value in found.items() if value}


def _named(address: NameAddress) -> str:
    """A number as it stands; anybody else by address."""
    uri = address.uri
    if _NUMBER.fullmatch(uri.name):
        return uri.name
    return f"{uri.name}@{uri.host}" if uri.name and uri.name != "anonymous" else ""
