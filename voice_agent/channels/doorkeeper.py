"""Who is let in at an upgrade, and how the others are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from voice_agent.channels.streaming.connection import Scope, Send


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a request is turned away, with the HTTP status that says so."""

    status: int
    code: str
    message: str


Doorkeeper = Callable[[Scope], Denial | None]
"""Judges a connection by its headers, query and peer. None lets it in."""


async def deny(send: Send, denial: Denial) -> None:
    """Answer an upgrade request with an HTTP error and a JSON body."""
    body = json.dumps({"code": denial.code, "message": denial.message}).encode()
    headers = [(b"content-type", b"application/json")]
    if denial.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "websocket.http.response.start", "status": denial.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
