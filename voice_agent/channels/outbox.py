"""What waits to leave on a WebSocket: agent audio and messages in order, bounded, and a way past them. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from voice_agent.audio.frames import FRAME_MS

MAX_AUDIO_S = 2.0
"""Agent audio kept for a client that reads too slowly; older audio is dropped."""
MAX_FRAMES = int(MAX_AUDIO_S * 1000 / FRAME_MS)
MAX_MESSAGES = 1000
"""Other messages kept for such a client."""


class _Kind(Enum):
    AUDIO = auto()
    MARK = auto()
    """Stands for the audio before it, and goes when that is cleared."""
    OTHER = auto()


class Outbox:
    """Items are ASGI messages, ready to send.

    Attributes:
        frames: Audio items waiting.
    """

    __slots__ = ("_items", "_max_frames", "frames")

    def __init__(self, max_audio_s: float = MAX_AUDIO_S) -> None:
        """Args: ``max_audio_s``: agent audio kept, in pieces of 20 ms."""
        self._max_frames = max(1, round(max_audio_s * 1000 / FRAME_MS))
        self._items: deque[tuple[_Kind, dict[str, Any]]] = deque()
        self.frames = 0

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def is_full(self) -> bool:
        """No more messages fit."""
        return len(self._items) - self.frames >= MAX_MESSAGES

    def add_audio(self, message: str | bytes) -> bool:
        """Queue one piece of audio. Returns False when the oldest had to go for it."""
        self._items.append((_Kind.AUDIO, _sent(message)))
        self.frames += 1
        if self.frames <= self._max_frames:
            return True
        oldest = next(index for index, (kind, _) in enumerate(self._items) if kind is _Kind.AUDIO)
        del self._items[oldest]
        self.frames -= 1
        return False

    def add(self, message: str | bytes, *, mark: bool = False) -> None:
        """Queue a message. A ``mark`` stands for the audio before it and goes when that is cleared."""
        self._items.append((_Kind.MARK if mark else _Kind.OTHER, _sent(message)))

    def add_close(self, code: int) -> None:
        self._items.append((_Kind.OTHER, {"type": "websocket.close", "code": code}))

    def clear(self, messages: Iterable[str | bytes]) -> None:
        """Drop all audio and its marks, and put ``messages`` before everything else."""
        kept = [(kind, item) for kind, item in self._items if kind is _Kind.OTHER]
        self._items.clear()
        for message in messages:
            self.add(message)
        self._items.extend(kept)
        self.frames = 0

    def take(self) -> dict[str, Any]:
        """Take the next item. There must be one."""
        kind, item = self._items.popleft()
        if kind is _Kind.AUDIO:
            self.frames -= 1
        return item


def _sent(message: str | bytes) -> dict[str, Any]:
    return {"type": "websocket.send", "text" if isinstance(message, str) else "bytes": message}
