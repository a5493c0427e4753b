"""How late an event loop runs while something else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TICK_S = 0.01


@asynccontextmanager
async def watched_lag() -> AsyncIterator[list[float]]:
    """Yield a list that fills with the lateness in seconds of a 10 ms tick while the body runs."""
    loop = asyncio.get_running_loop()
    lags: list[float] = []

    async def tick() -> None:
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            lags.append(loop.time() - due)

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        try:
            yield lags
        finally:
            ticking.cancel()
