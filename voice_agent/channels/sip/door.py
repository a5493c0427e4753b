"""Who may call by SIP: exchanges by their address, telephones by a password. Pure. Fails closed."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from voice_agent.channels.sip.digest import Verifier
from voice_agent.channels.sip.message import Request

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is answered instead of a call."""

    status: int
    code: str
    headers: tuple[tuple[str, str], ...] = ()


class Door:
    """Judges requests that belong to no call yet.

    Args:
        networks: Whose calls are taken as they come.
        verifier: Asks everybody else for a password; None where there are no passwords.
    """

    def __init__(self, networks: Sequence[Network], verifier: Verifier | None) -> None:
        self._networks, self._verifier = tuple(networks), verifier
        self.exchanges: frozenset[str] = frozenset()
        """Addresses of the exchange that we are registered at."""

    def judge(self, request: Request, source: str, now: float) -> Refusal | None:
        """Return why the request is turned away, or None."""
        if self.is_known(source):
            return None
        if self._verifier is None:
            return Refusal(403, "not_allowed")
        if self._verifier.admits(request, source, now):
            return None
        return Refusal(401, "unauthorized", tuple(self._verifier.challenges(request, source, now)))

    def is_known(self, source: str) -> bool:
        """Whether calls from this address are taken as they come."""
        if source in self.exchanges:
            return True
        try:
            address = ipaddress.ip_address(source.partition("%")[0])
        except ValueError:
            return False
        return any(address in network for network in self._networks)
