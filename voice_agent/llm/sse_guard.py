"""Server-sent events with their unreadable ones taken out.

OpenAI-compatible servers now and then send a data line that is no JSON (a log line, a cut chunk).
The OpenAI client gives the whole stream up at such a line; the caller would lose the rest of the
sentence. This transport lets everything else through, byte by byte as it came.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import httpx

log = logging.getLogger(__name__)

MAX_EVENT_BYTES = 1 << 20


class EventFilter:
    """Feeds on bytes, gives back whole events without those whose data is no JSON. No I/O."""

    def __init__(self) -> None:
        self._rest = b""
        self._event: list[bytes] = []
        self._size = 0
        self.dropped = 0

    def feed(self, data: bytes) -> bytes:
        """Return the events that are complete and may pass on.

        Raises:
            httpx.DecodingError: An event of more than ``MAX_EVENT_BYTES``.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        passed = []
        for line in lines:
            self._event.append(line + b"\n")
            self._size += len(line) + 1
            if not line.rstrip(b"\r"):
                passed.append(self._judge())
        if self._size + len(self._rest) > MAX_EVENT_BYTES:
            raise httpx.DecodingError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return b"".join(passed)

    def end(self) -> bytes:
        """Return what is left at the end of the stream: an event without its blank line counts."""
        self._event.append(self._rest)
        self._rest = b""
        return self._judge()

    def _judge(self) -> bytes:
        event, self._event, self._size = b"".join(self._event), [], 0
        fields = (line.partition(b":") for line in event.splitlines())
        data = b"\n".join(value.strip() for name, _, value in fields if name == b"data")
        if data and data != b"[DONE]":
            try:
                json.loads(data)
            except ValueError:
                self.dropped += 1
                log.warning("a model server sent an event that is no JSON; it was left out")
                return b""
        return event


class _GuardedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = EventFilter()
        async for data in self._inner:
            if passed := events.feed(data):
                yield passed
        if rest := events.end():
            yield rest

    async def aclose(self) -> None:
        await self._inner.aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """An HTTP transport whose event streams are filtered; other responses pass untouched."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        is_events = response.headers.get("content-type", "").startswith("text/event-stream")
        if is_events and "content-encoding" not in response.headers:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            response.stream = _GuardedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()
