"""A real HTTP server on a free port that answers chat completions by a script, and sees who hangs up.

Each request plays the next entry of the script, a sequence of:

* ``text("word")``, ``call(...)``, ``finish(...)`` or any dict: one streamed chunk;
* ``bytes``: sent as they are, as one event;
* a number: a pause in seconds;
* ``HANG``: nothing more, until the client hangs up;
* ``CUT``: the connection is cut.

An ``int`` alone as entry is an HTTP error status.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

HANG: Literal["hang"] = "hang"
CUT: Literal["cut"] = "cut"
Step = dict[str, Any] | bytes | float | Literal["hang", "cut"]
Script = Sequence["Sequence[Step] | int"]


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def text(content: str) -> dict[str, Any]:
    return _chunk({"role": "assistant", "content": content})


def call(index: int, *, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments} | ({"name": name} if name else {})
    return _chunk(
        {"tool_calls": [{"index": index, "type": "function", "function": function} | ({"id": id} if id else {})]}
    )


def finish(reason: str = "stop") -> dict[str, Any]:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return _chunk({}, reason) | {"usage": usage}


@dataclass
class Exchange:
    """One request. ``hung_up_at`` is the loop time at which the server saw the client go, if it went first."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    hung_up_at: float | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class CompletionServer:
    def __init__(self, script: Script) -> None:
        self._script = list(script)
        self.exchanges: list[Exchange] = []
        self.open_connections = 0
        self.base_url = ""
        self.asked = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        try:
            while True:
                exchange = await _read_request(reader)
                entry = self._script[len(self.exchanges)]
                self.exchanges.append(exchange)
                self.asked.set()
                await self._answer(exchange, entry, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open_connections -= 1
            writer.close()

    async def _answer(
        self,
        exchange: Exchange,
        entry: Sequence[Step] | int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if isinstance(entry, int):
            body = b'{"error": {"message": "refused", "type": "server_error"}}'
            writer.write(
                b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (entry, len(body))
            )
            writer.write(body)
            return
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        # The head goes out with the first step, so that a script may keep a client waiting for it.
        for step in entry:
            if isinstance(step, int | float):
                if await _client_left(reader, step):
                    raise self._left(exchange)
                continue
            if step == HANG:
                await _client_left(reader, None)
                raise self._left(exchange)
            if step == CUT:
                writer.transport.abort()
                raise ConnectionAbortedError
            data = step if isinstance(step, bytes) else b"data: " + json.dumps(step).encode() + b"\n\n"
            writer.write(head + b"%x\r\n%s\r\n" % (len(data), data))
            head = b""
            await writer.drain()
        data = b"data: [DONE]\n\n"
        writer.write(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        await writer.drain()

    def _left(self, exchange: Exchange) -> ConnectionResetError:
        exchange.hung_up_at = asyncio.get_running_loop().time()
        exchange.gone.set()
        return ConnectionResetError()


async def _client_left(reader: asyncio.StreamReader, seconds: float | None) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), seconds) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


async def _read_request(reader: asyncio.StreamReader) -> Exchange:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(first.split()[1], headers, json.loads(body or b"{}"))


@asynccontextmanager
async def completion_server(*script: Sequence[Step] | int) -> AsyncIterator[CompletionServer]:
    """Run a server for the length of a ``with`` block."""
    completions = CompletionServer(script)
    server = await asyncio.start_server(completions.serve, "127.0.0.1", 0)
    completions.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield completions
    finally:
        server.close()
