"""A bad network between two ends of a TCP connection, as TCP makes it felt: nothing is lost, much is late.

A packet that is lost is sent again after a timeout of 200 ms and more, and all that came behind it waits: a stall, then
a burst. Delay varies from packet to packet, and TCP keeps the order. It needs no ``netem`` in the kernel, and is the
same each time (``seed``).

::

    sent       ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮
    lost           ✗
    arrives    ▮ ▮                 ▮▮▮▮▮▮▮ ▮ ▮       RTO_S later, all at once
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

RTO_S = 0.2
"""Least time after which Linux sends a lost packet again; each further loss doubles it."""
MTU = 1400
WINDOW = 16 * 1024
"""Bytes on the way at most, each way; then the sender has to wait."""


@dataclass
class BadNetwork:
    """Attributes: ``port``: where to connect to; ``stalls``: timeouts so far; ``open``: cleared, nothing passes."""

    port: int
    stalls: int = 0
    open: asyncio.Event = None  # type: ignore[assignment]


@asynccontextmanager
async def bad_network(
    port: int, *, loss: float = 0.0, delay_s: float = 0.02, jitter_s: float = 0.0, seed: int = 1
) -> AsyncIterator[BadNetwork]:
    """Carry connections to ``port`` of this machine, badly.

    Args:
        loss: Share of packets that have to be sent again.
        delay_s: Time on the way; ``jitter_s`` is added to it, anything up to that.
    """
    dice, tasks = random.Random(seed), set[asyncio.Task[None]]()
    network = BadNetwork(0, open=asyncio.Event())
    network.open.set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WINDOW // MTU)

        async def deliver() -> None:
            loop = asyncio.get_running_loop()
            while True:
                due, data = await way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await network.open.wait()
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        delivering = asyncio.create_task(deliver())
        tasks.add(delivering)
        try:
            while True:
                data = await reader.read(MTU)
                late_s, timeout_s = delay_s + dice.random() * jitter_s, RTO_S
                while data and dice.random() < loss:
                    late_s, timeout_s = late_s + timeout_s, timeout_s * 2
                    network.stalls += 1
                await way.put((asyncio.get_running_loop().time() + late_s, data))
                if not data:
                    break
            await delivering
        except OSError:
            writer.close()
        finally:
            delivering.cancel()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # As much as a network holds, and not the megabytes that loopback does.
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW // 4)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        to_reader, to_writer = await asyncio.open_connection(sock=sock, limit=2 * MTU)
        for source, target in ((reader, to_writer), (to_reader, writer)):
            task = asyncio.create_task(carry(source, target))
            tasks.add(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    try:
        yield network
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
