"""A real HTTP server on a free port that answers requests for embeddings by a script, in OpenAI's format.

An entry of the script is a function from the texts to the rows of ``data``, an HTTP status, or ``HANG``. The last entry
answers all further requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

HANG = "hang"
Entry = Callable[[Sequence[str]], list[dict[str, Any]]] | int | str


def rows(vectors: Sequence[Sequence[float]], order: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Return the rows of an answer; ``order`` says at which place each index stands."""
    found = [{"object": "embedding", "index": n, "embedding": list(v)} for n, v in enumerate(vectors)]
    return found if order is None else [found[at] for at in order]


class EmbeddingServer:
    def __init__(self, script: Sequence[Entry]) -> None:
        self._script = list(script)
        self.base_url = ""
        self.asked: list[list[str]] = []
        self.keys: list[str] = []
        self._connections: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.current_task()] = writer
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                headers = dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                self.keys.append(headers.get("authorization", ""))
                self.asked.append(body["input"])
                entry = self._script[min(len(self.asked), len(self._script)) - 1]
                if entry == HANG:
                    await reader.read()  # until the client goes
                    return
                status = 200
                answer: dict[str, Any] = {
                    "object": "list",
                    "model": "m",
                    "usage": {"prompt_tokens": 1, "total_tokens": 1},
                }
                if isinstance(entry, int):
                    status, answer = entry, {"error": {"message": "refused", "type": "x", "code": str(entry)}}
                elif callable(entry):
                    answer["data"] = entry(body["input"])
                data = json.dumps(answer).encode()
                fields = b"content-type: application/json\r\ncontent-length: %d" % len(data)
                writer.write(b"HTTP/1.1 %d X\r\n%s\r\n\r\n%s" % (status, fields, data))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def aclose(self) -> None:
        """Hang up on whoever is still there."""
        for writer in self._connections.values():
            writer.close()
        await asyncio.wait([task for task in self._connections if task is not None], timeout=5)


@asynccontextmanager
async def embedding_server(*script: Entry) -> AsyncIterator[EmbeddingServer]:
    """Run a server for the length of a ``with`` block."""
    embeddings = EmbeddingServer(script)
    server = await asyncio.start_server(embeddings.serve, "127.0.0.1", 0)
    embeddings.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield embeddings
    finally:
        server.close()
        if embeddings.asked:
            await embeddings.aclose()
