"""Tells viewers that something happened, while it happens: which conversation, which record. Never what was said.

A viewer then reads the conversation the way it reads any other, redacted. One that does not keep up is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from voice_agent.dialogue.events import payload_of

MAX_WAITING = 256
"""Notices that may wait for one viewer."""


class TooManyViewers(Exception):
    """No more viewers are taken."""


class Viewer:
    """One who watches. Leave it by `close`, or as a context manager.

    Attributes:
        is_open: Notices still come.
        is_slow: They do not, because too many had not been taken.
    """

    def __init__(self, feed: LiveFeed, conversation_id: str | None) -> None:
        self._feed, self.conversation_id = feed, conversation_id
        self._notices: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MAX_WAITING)
        self.is_open, self.is_slow = True, False

    def put(self, notice: dict[str, Any]) -> None:
        try:
            self._notices.put_nowait(notice)
        except asyncio.QueueFull:
            self.is_slow = True
            self.close()

    async def next(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next notice; None when none came within ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._notices.get()
        except TimeoutError:
            return None

    def close(self) -> None:
        self.is_open = False
        self._feed.viewers.discard(self)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


class LiveFeed:
    """Attributes: ``viewers``: those who watch now."""

    def __init__(self, max_viewers: int) -> None:
        self._max_viewers = max_viewers
        self.viewers: set[Viewer] = set()

    def watch(self, conversation_id: str | None = None) -> Viewer:
        """Return a new viewer, of one conversation or of all.

        Raises:
            TooManyViewers: There are as many as may be.
        """
        if len(self.viewers) >= self._max_viewers:
            raise TooManyViewers
        viewer = Viewer(self, conversation_id)
        self.viewers.add(viewer)
        return viewer

    def close(self) -> None:
        """Send everybody away: the service stops."""
        for viewer in tuple(self.viewers):
            viewer.close()

    def tell(self, record: Mapping[str, Any]) -> None:
        """A conversation has recorded something. Cheap when nobody watches."""
        if not self.viewers:
            return
        kind, payload = payload_of(record)
        conversation_id = record.get("conversation_id")
        notice = {
            "conversation": conversation_id,
            "sequence": record.get("sequence"),
            "kind": kind,
            "turn_id": payload.get("turn_id"),
        }
        for viewer in tuple(self.viewers):
            if viewer.conversation_id is None or viewer.conversation_id == conversation_id:
                viewer.put(notice)
