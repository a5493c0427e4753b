"""What happens on calls, to a page that follows them: server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Protocol

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from voice_agent.inspector.feed import Viewer
from voice_agent.server.inspection_guard import NO_STORE

TICK_S = 1.0
"""How often a viewer is told of the state of calls, if it has changed."""
QUIET_S = 15.0
"""A line of nothing is sent this often, so that a connection that is gone is noticed."""


class Shows(Protocol):
    """What knows who is on the line."""

    def calls(self) -> list[dict[str, Any]]: ...


class LiveAnswer(StreamingResponse):
    """Follows calls for one viewer, whose place is free again afterwards: also when the page left before it began."""

    def __init__(self, desk: Shows, viewer: Viewer) -> None:
        super().__init__(_followed(desk, viewer), media_type="text/event-stream", headers=NO_STORE)
        self._viewer = viewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._viewer:
            await super().__call__(scope, receive, send)


async def _followed(desk: Shows, viewer: Viewer) -> AsyncIterator[bytes]:
    """Server-sent events: ``calls`` (the calls on the line, when that changes), ``record``, ``closed``."""
    loop = asyncio.get_running_loop()
    sent_at, shown = loop.time(), None
    while viewer.is_open:
        calls = desk.calls()
        now = [(call["id"], call["state"]) for call in calls]
        if now != shown:
            shown, sent_at = now, loop.time()
            yield _event("calls", calls)
        notice = await viewer.next(TICK_S)
        if notice is not None:
            sent_at = loop.time()
            yield _event("record", notice)
        elif loop.time() - sent_at >= QUIET_S:
            sent_at = loop.time()
            yield b": still here\n\n"
    yield _event("closed", {"reason": "too_slow" if viewer.is_slow else "shutdown"})


def _event(name: str, content: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content, default=str)}\n\n".encode()
