"""A server that is not there: told apart from one that answers with an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

# What httpx (under both of its names) and aiohttp call a connection that was never made.
_NEVER_CONNECTED = ("ConnectError", "ConnectTimeout", "ClientConnectorError", "ClientConnectorDNSError")


def unreachable(error: BaseException, address: str | None) -> str | None:
    """Say that nobody answered at ``address``, and why; None if ``error`` came later than that.

    Providers' clients wrap such a fault until it looks like an answer with status 500.

    Args:
        address: The configured ``base_url``; what it carries besides host, port and path is left out.
    """
    chain = list(_causes(error))
    if not any(type(fault).__name__ in _NEVER_CONNECTED for fault in chain):
        return None
    reason = next((text for fault in reversed(chain) if (text := _reason(fault))), "no answer")
    return f"cannot connect to {_place(address)}: {reason}. Check that the server runs, and llm.base_url"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    fault: BaseException | None = error
    while fault is not None and id(fault) not in seen:
        seen.add(id(fault))
        yield fault
        fault = fault.__cause__ or fault.__context__


def _reason(fault: BaseException) -> str | None:
    """The system's own words; a client's may quote the address with what it carries."""
    if not isinstance(fault, OSError) or fault.errno is None:
        return None
    return os.strerror(fault.errno) if fault.errno > 0 else fault.strerror


def _place(address: str | None) -> str:
    if address is None:
        return "the provider"
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
