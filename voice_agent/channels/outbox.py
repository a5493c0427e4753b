"""What waits to leave on a WebSocket: agent audio and JSON messages in order, bounded, and a way past them. Pure."""

from __future__ import annotations

from collections import deque
from typing import Any

from voice_agent.audio.frames import FRAME_MS
from voice_agent.channels.messages import CLEAR

MAX_AUDIO_S = 2.0
"""Agent audio kept for a client that reads too slowly; older audio is dropped."""
MAX_FRAMES = int(MAX_AUDIO_S * 1000 / FRAME_MS)
MAX_MESSAGES = 1000
"""JSON messages kept for such a client."""


class Outbox:
    """Items are ASGI messages, ready to send.

    Attributes:
        frames: Audio items waiting.
    """

    __slots__ = ("_items", "frames")

    def __init__(self) -> None:
        self._items: deque[dict[str, Any]] = deque()
        self.frames = 0

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def is_full(self) -> bool:
        """No more messages fit."""
        return len(self._items) - self.frames >= MAX_MESSAGES

    def add_audio(self, pcm: bytes) -> bool:
        """Queue audio. Returns False when the oldest had to go for it."""
        self._items.append({"type": "websocket.send", "bytes": pcm})
        self.frames += 1
        if self.frames <= MAX_FRAMES:
            return True
        oldest = next(index for index, item in enumerate(self._items) if "bytes" in item)
        del self._items[oldest]
        self.frames -= 1
        return False

    def add_text(self, text: str, *, mark: bool = False) -> None:
        """Queue a JSON message. A ``mark`` stands for the audio before it and goes when that is cleared."""
        self._items.append({"type": "websocket.send", "text": text, "mark": mark})

    def add_close(self, code: int) -> None:
        self._items.append({"type": "websocket.close", "code": code})

    def clear(self) -> None:
        """Drop all audio and its marks, and put ``clear`` before everything else."""
        kept = [item for item in self._items if "bytes" not in item and not item.get("mark")]
        self._items.clear()
        self.add_text(CLEAR)
        self._items.extend(kept)
        self.frames = 0

    def take(self) -> dict[str, Any]:
        """Take the next item. There must be one."""
        item = self._items.popleft()
        if "bytes" in item:
            self.frames -= 1
        return item
