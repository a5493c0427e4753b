"""The carriers' REST APIs, as far as we use them: takes what is asked, keeps it, answers as it is told to."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from aiohttp import web


@dataclass
class CarrierApi:
    """Attributes:
    requests: What was asked, in order: method, path, body.
    statuses: HTTP status for a method and the end of a path; 200 for any other.
    """

    url: str = ""
    requests: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    statuses: dict[tuple[str, str], int] = field(default_factory=dict)
    on_request: Callable[[str, str, dict[str, Any]], None] = lambda method, path, body: None
    hold: asyncio.Event | None = None
    """Answers wait for it."""
    call: str = ""
    """What the next call is named."""
    named: list[str] = field(default_factory=list)
    """What calls have been named."""

    def forget(self) -> None:
        """Begin anew, for another test on the same server."""
        for kept in (self.requests, self.authorizations, self.statuses, self.named):
            kept.clear()
        self.on_request, self.hold, self.call = lambda method, path, body: None, None, ""

    def last(self, path: str) -> dict[str, Any]:
        """The body of the last request to ``path``."""
        return next(body for _, asked, body in reversed(self.requests) if asked == path)

    def asked(self, method: str, path: str) -> list[dict[str, Any]]:
        return [body for how, asked, body in self.requests if (how, asked) == (method, path)]

    async def answer(self, request: web.Request) -> web.Response:
        text, path = await request.text(), unquote(request.path)
        if "json" in request.content_type:
            body = json.loads(text) if text else {}
        else:
            body = dict(parse_qsl(text, keep_blank_values=True))
        self.requests.append((request.method, path, body))
        self.authorizations.append(request.headers.get("authorization", ""))
        if self.hold is not None:
            await self.hold.wait()
        for (method, end), status in self.statuses.items():
            if request.method == method and path.endswith(end):
                return web.json_response({"code": 20404, "message": "no"}, status=status)
        self.on_request(request.method, path, body)
        call = self.call or str(uuid.uuid4())
        self.named.append(call)
        return web.json_response({"sid": call, "request_uuid": call, "uuid": call, "data": {"call_control_id": call}})


@asynccontextmanager
async def carrier_api() -> AsyncIterator[CarrierApi]:
    """Serve on a free port of loopback."""
    api = CarrierApi()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()
