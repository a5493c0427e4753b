"""The two callables that a streaming wire works on, as ASGI servers give them, and the codes it closes with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

NORMAL_CLOSURE, POLICY_VIOLATION, TRY_AGAIN_LATER = 1000, 1008, 1013
"""Codes of RFC 6455 and of the registry that it set up."""
