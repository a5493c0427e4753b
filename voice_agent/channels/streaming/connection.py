"""What an ASGI server gives a streaming wire: its scope and the two callables; and the codes that it closes with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

NORMAL_CLOSURE, POLICY_VIOLATION, TRY_AGAIN_LATER = 1000, 1008, 1013
"""Codes of RFC 6455 and of the registry that it set up."""


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers by lower-case name; those that come twice are joined, as HTTP has it."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1"), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers
