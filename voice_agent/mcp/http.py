"""The HTTP client that connections to servers use: with their headers and key, and a bound on what they may answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

MAX_RESPONSE_BYTES = 4_000_000
"""Longest answer in one piece. Events of a stream are bounded one by one, by the SDK."""
READ_S = 300.0
"""How long a stream may say nothing."""


def http_client(headers: Mapping[str, str], connect_timeout_s: float) -> httpx2.AsyncClient:
    """Return a client that refuses answers which are too long or compressed."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            taken = 0
            async for chunk in self._stream:
                taken += len(chunk)
                if taken > MAX_RESPONSE_BYTES:
                    raise httpx2.ReadError(f"the answer is longer than {MAX_RESPONSE_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await super().handle_async_request(request)
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()
                raise httpx2.ReadError("the answer is compressed, which it was not asked to be")
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                response.stream = Bounded(response.stream)
            return response

    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(connect_timeout_s, read=READ_S),
        transport=Transport(),
    )
