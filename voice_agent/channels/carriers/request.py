"""A carrier's HTTP request, read within bounds, with the URL that it was sent to as the carrier saw it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from voice_agent.channels.streaming.connection import Receive, Scope, headers_of

MAX_BODY_BYTES = 64 * 1024
BODY_S = 5.0
"""Limit on the arrival of a request's body."""
MAX_FIELDS = 200


class BadCarrierRequest(Exception):
    """A request cannot be read. ``status`` is that of the answer."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class CarrierRequest:
    """One request, or the upgrade to a WebSocket.

    Attributes:
        url: As the carrier sees it, query included.
        headers: By lower-case name; those that come twice are joined.
    """

    method: str
    url: str
    path: str
    query: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    def form(self) -> dict[str, str]:
        """Return the fields of the body.

        Raises:
            BadCarrierRequest: They cannot be read, or are too many; a field that comes twice is as bad.
        """
        if not self.body:
            return {}
        try:
            pairs = parse_qsl(self.body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            raise BadCarrierRequest(400, "bad_form") from None
        fields = dict(pairs)
        if len(fields) != len(pairs):
            raise BadCarrierRequest(400, "bad_form")
        return fields

    def object(self) -> dict[str, Any]:
        """Return the JSON object of the body. Raises `BadCarrierRequest`."""
        try:
            body = json.loads(self.body or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise BadCarrierRequest(400, "bad_json")
        return body


def request_of(scope: Scope, public_url: str, body: bytes = b"") -> CarrierRequest:
    """Return the request of an ASGI scope. A WebSocket's URL begins with ``ws``, as carriers write it."""
    base = public_url.rstrip("/")
    if scope["type"] == "websocket":
        base = "ws" + base.removeprefix("http")
    query = scope["query_string"].decode("latin-1")
    path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
    try:
        fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        fields = {}
    url = base + path + (f"?{query}" if query else "")
    return CarrierRequest(scope.get("method", "GET"), url, scope["path"], fields, headers_of(scope), body)


async def read_request(scope: Scope, receive: Receive, public_url: str) -> CarrierRequest:
    """Read a whole request.

    Raises:
        BadCarrierRequest: Its body is too large, comes too slowly, or not at all.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise BadCarrierRequest(400, "client_gone")
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    raise BadCarrierRequest(413, "too_large")
                if not message.get("more_body"):
                    return request_of(scope, public_url, body)
    except TimeoutError:
        raise BadCarrierRequest(408, "too_slow") from None
