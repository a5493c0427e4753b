"""Standard input and output as the protocol's lines, so that neither keeps the process from ending.

::

    client ── lines ──▶ InputLines ──▶ requests ──▶ OutputLines ──▶ client
                            └── waits while a line cannot be written: a client that never reads is not read either
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 200_000


class OutputLines:
    """Writes to a file descriptor in a thread that nobody has to wait for: a pipe that is full may stay so for ever."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: queue.SimpleQueue[tuple[bytes, asyncio.AbstractEventLoop, asyncio.Future[None]]]
        self._waiting = queue.SimpleQueue()
        self._pending = 0
        self.is_free = asyncio.Event()
        """Nothing waits to be written."""
        self.is_free.set()
        threading.Thread(target=self._run, name="mcp.output", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write ``text`` and wait until it is out.

        Raises:
            OSError: The client is gone.
        """
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._pending += 1
        self.is_free.clear()
        self._waiting.put((text.encode("utf-8", "replace"), loop, done))
        try:
            await done
        finally:
            self._pending -= 1
            if not self._pending:
                self.is_free.set()

    async def flush(self) -> None:
        """Everything is out already."""

    def _run(self) -> None:
        while True:
            data, loop, done = self._waiting.get()
            fault: OSError | None = None
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                fault = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, done, fault)


def _settle(done: asyncio.Future[None], fault: OSError | None) -> None:
    if done.done():
        return
    if fault is None:
        done.set_result(None)
    else:
        done.set_exception(fault)


class InputLines:
    """Standard input line by line, on the loop: a thread that waits for it could not be told to stop."""

    def __init__(self, reader: asyncio.StreamReader, output: OutputLines) -> None:
        self._reader, self._output = reader, output

    @classmethod
    async def open(cls, output: OutputLines) -> InputLines:
        """Take standard input over; programs that tools start find theirs empty."""
        reader = asyncio.StreamReader(limit=MAX_REQUEST_BYTES)
        private = os.fdopen(os.dup(0), "rb", buffering=0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), private)
        return cls(reader, output)

    def __aiter__(self) -> InputLines:
        return self

    async def __anext__(self) -> str:
        await self._output.is_free.wait()
        try:
            line = await self._reader.readline()
        except ValueError:
            log.warning("a message of more than %d bytes: the client is let go", MAX_REQUEST_BYTES)
            line = b""
        if not line:
            raise StopAsyncIteration
        return line.decode(errors="replace")
