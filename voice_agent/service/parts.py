"""Closing what a service is made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

log = logging.getLogger(__name__)

CLOSE_PART_S = 12.0
"""Limit on closing one part of the service; the parts' own limits lie within."""


async def close_each(parts: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Close one part after another. One that fails or hangs holds up none of the others."""
    for close in parts:
        try:
            async with asyncio.timeout(CLOSE_PART_S):
                await close()
        except Exception:
            log.exception("a part of the service could not be closed")
