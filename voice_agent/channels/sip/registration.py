"""Stays registered at an exchange: it then knows where we are, and its calls are taken."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets

from voice_agent.channels.sip.addresses import BadSip, NameAddress, SipUri
from voice_agent.channels.sip.agent import Credentials, UserAgent
from voice_agent.channels.sip.door import Door
from voice_agent.channels.sip.message import Headers, Request, Response

log = logging.getLogger(__name__)

RETRY_S = (5.0, 10.0, 20.0, 40.0, 60.0)
"""How long to wait after a failure, and after those that follow it."""
REFRESH_SHARE = 0.8
"""Share of the time granted after which it is asked for again."""
SHORTEST_S = 10
_EXPIRES = re.compile(r"expires\s*=\s*\"?(\d{1,8})", re.IGNORECASE)


class Registration:
    """Args: ``registrar``: ``host`` or ``host:port``; ``door``: lets the exchange's calls in."""

    def __init__(self, agent: UserAgent, registrar: str, credentials: Credentials, expires_s: int, door: Door) -> None:
        self._agent, self._uri = agent, SipUri.parse(f"sip:{registrar}")
        self._credentials, self._expires_s, self._door = credentials, expires_s, door
        self._call_id, self._tag = secrets.token_hex(12), secrets.token_hex(8)
        self._sequence = 0
        self.registered = False

    async def run(self) -> None:
        """Register, again and again, until cancelled."""
        failures = 0
        while True:
            granted_s = await self._register(self._expires_s)
            if granted_s is None:
                wait_s = RETRY_S[min(failures, len(RETRY_S) - 1)]
                failures += 1
            else:
                wait_s, failures = max(SHORTEST_S * REFRESH_SHARE, granted_s * REFRESH_SHARE), 0
            await asyncio.sleep(wait_s)

    async def withdraw(self) -> None:
        """Tell the exchange that we are gone. Its caller bounds the time."""
        if self.registered:
            await self._register(0)

    async def _register(self, expires_s: int) -> float | None:
        """Return for how many seconds we are registered now; None if we are not."""
        peer = await self._agent.resolve(self._uri)
        if peer is None:
            self._failed("its address cannot be found")
            return None
        self._door.exchanges = frozenset({peer[0]})
        contact = self._agent.contact(peer)

        def make(*more: tuple[str, str]) -> Request:
            self._sequence += 1
            us = f"<sip:{self._credentials.user}@{self._credentials.domain}>"
            lines = [
                ("max-forwards", "70"),
                ("from", f"{us};tag={self._tag}"),
                ("to", us),
                ("call-id", self._call_id),
                ("cseq", f"{self._sequence} REGISTER"),
                contact,
                ("expires", str(expires_s)),
                *more,
            ]
            return Request(Headers(lines), b"", "REGISTER", f"sip:{self._credentials.domain}")

        response = await self._agent.ask(make, peer, self._credentials)
        if response is None or response.status >= 300:
            self._failed("no answer" if response is None else f"status {response.status}")
            return None
        if not self.registered and expires_s:
            log.info("registered at the SIP exchange")
        self.registered = bool(expires_s)
        return float(_granted(response, expires_s, SipUri.parse(contact[1].strip("<>"))))

    def _failed(self, why: str) -> None:
        self.registered = False
        log.warning("not registered at the SIP exchange: %s", why)


def _granted(response: Response, asked_s: int, us: SipUri) -> int:
    """Return for how many seconds we are registered: no longer than we asked for, whatever stands there.

    All who are registered under our name may be listed; only what is said of us counts.
    """
    given = response.headers.get("expires")
    granted_s = int(given) if given.isascii() and given.isdecimal() and len(given) < 9 else asked_s
    for value in response.headers.all("contact"):
        if (match := _EXPIRES.search(value)) and _is_ours(value, us):
            granted_s = int(match[1])
    return min(granted_s, asked_s)


def _is_ours(value: str, us: SipUri) -> bool:
    try:
        uri = NameAddress.parse(value).uri
    except BadSip:
        return False
    return (uri.user, uri.host, uri.port or 5060) == (us.user, us.host, us.port or 5060)
