"""How many messages of whom a SIP port reads. Pure: time comes in as seconds of any one monotonic clock.

::

    peers of calls, allowed networks, the exchange ─▶ a bucket for each ──────────────────────────▶ read
    anybody else ────────────────────────────────────▶ a bucket for each ─▶ one for all of them ──▶ read

What is dropped is repeated by whoever means it. Whoever is known shares nothing with strangers.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Hashable

from voice_agent.channels.limits import TokenBucket

KNOWN = (400.0, 400.0)
"""Messages of one known address, at once and per second after that: a trunk's calls all come from one."""
STRANGER = (100.0, 100.0)
"""The same of one address that nothing is known of: an office's telephones behind one router, which all wake up."""
STRANGERS = (400.0, 400.0)
"""The same of all strangers together: what reading them may cost."""
MAX_SOURCES = 1000
"""Addresses that are kept in mind, of strangers and of others each; the one heard longest ago is forgotten."""


class MessageBudget:
    """The buckets of one port.

    Args:
        is_known: Whether messages of an address are welcome, call or no call.
    """

    def __init__(self, is_known: Callable[[str], bool], now: float) -> None:
        self._is_known = is_known
        self._known: dict[str, TokenBucket] = {}
        self._strangers: dict[str, TokenBucket] = {}
        self._all_strangers = TokenBucket(*STRANGERS, now)
        self._held: dict[Hashable, frozenset[str]] = {}
        self._peers: Counter[str] = Counter()

    def hold(self, call: Hashable, *hosts: str) -> None:
        """Count addresses as known until the call is over."""
        self.release(call)
        self._held[call] = frozenset(hosts)
        self._peers.update(self._held[call])

    def release(self, call: Hashable) -> None:
        """The call is over."""
        for host in self._held.pop(call, ()):
            self._peers[host] -= 1
            if not self._peers[host]:
                del self._peers[host]

    def take(self, host: str, now: float) -> bool:
        """Return whether a message from ``host``, an IP address, is read."""
        if host in self._peers or self._is_known(host):
            return _bucket(self._known, host, KNOWN, now).take(1, now)
        # Its own bucket first: what one stranger sends too much takes nothing from the others.
        own = _bucket(self._strangers, _subscriber(host), STRANGER, now)
        return own.take(1, now) and self._all_strangers.take(1, now)


def _bucket(buckets: dict[str, TokenBucket], host: str, size: tuple[float, float], now: float) -> TokenBucket:
    bucket = buckets.pop(host, None) or TokenBucket(*size, now)
    buckets[host] = bucket  # the last heard stands last
    if len(buckets) > MAX_SOURCES:
        del buckets[next(iter(buckets))]
    return bucket


def _subscriber(host: str) -> str:
    """What one stranger has to send from: in IPv6 a network of 64 bits, any address of it."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4 or address.ipv4_mapped is not None:
        return host
    return str(int(address) >> 64)
