"""What waits to leave for a browser, and when each frame is to be played. Pure: time comes in as seconds.

A browser cannot be told to forget what it has: so no more than a short lead is sent ahead of time, and
the rest is kept here, where `Pacer.clear` drops it. Messages keep their place among the frames; a mark
also waits until the audio before it has been played::

    given       ▮▮▮▮▮▮▮▮▮▮ mark
    sent        ▮▮▮▮ ▮ ▮ ▮ ▮ ▮ ▮ ───── mark       the first `LEAD_S` at once, the rest in real time
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from voice_agent.audio.frames import FRAME_MS

FRAME_S = FRAME_MS / 1000
LEAD_S = 0.04
"""Audio sent ahead of its time at most: all that a clear cannot take back, beside the browser's own buffer."""
LATE_S = 0.06
"""A frame this late is still part of the speech before it; a later one begins anew, at its own time."""
MAX_AUDIO_S = 2.0
"""Audio kept; older audio is dropped."""
MAX_FRAMES = round(MAX_AUDIO_S / FRAME_S)
MAX_MESSAGES = 1000
_EPSILON_S = 1e-6


@dataclass(frozen=True, slots=True)
class PacedFrame:
    """One frame to send now. ``at_s``: when it is to be played; ``first``: it begins a piece of speech."""

    pcm: bytes
    at_s: float
    first: bool


@dataclass(frozen=True, slots=True)
class PacedText:
    """One JSON message to send now."""

    text: str
    mark: bool = False


class Pacer:
    """Attributes: ``frames``: frames waiting; ``plays_until``: when all audio sent so far will have been played."""

    __slots__ = ("_items", "frames", "plays_until")

    def __init__(self, now: float) -> None:
        self._items: deque[bytes | PacedText] = deque()
        self.frames = 0
        self.plays_until = now - 2 * LATE_S

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def is_full(self) -> bool:
        """No more messages fit."""
        return len(self._items) - self.frames >= MAX_MESSAGES

    def add_audio(self, frame: bytes) -> bool:
        """Queue one frame. Returns False when the oldest had to go for it."""
        self._items.append(frame)
        self.frames += 1
        if self.frames <= MAX_FRAMES:
            return True
        oldest = next(index for index, item in enumerate(self._items) if isinstance(item, bytes))
        del self._items[oldest]
        self.frames -= 1
        return False

    def add_text(self, text: str, *, mark: bool = False) -> None:
        """Queue a message. A ``mark`` stands for the audio before it and goes when that is cleared."""
        self._items.append(PacedText(text, mark))

    def clear(self, now: float) -> None:
        """Drop all audio and its marks; messages stay. What was sent ahead counts as not played."""
        kept = [item for item in self._items if isinstance(item, PacedText) and not item.mark]
        self._items.clear()
        self._items.extend(kept)
        self.frames = 0
        self.plays_until = min(self.plays_until, now)

    def take(self, now: float) -> PacedFrame | PacedText | None:
        """Take the next item that may leave now."""
        if not self._items or self._due(now) > now + _EPSILON_S:
            return None
        item = self._items.popleft()
        if isinstance(item, PacedText):
            return item
        self.frames -= 1
        first = now - self.plays_until > LATE_S
        at_s = now if first else self.plays_until
        self.plays_until = at_s + FRAME_S
        return PacedFrame(item, at_s, first)

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until `take` has something, or None while nothing waits."""
        return max(0.0, self._due(now) - now) if self._items else None

    def _due(self, now: float) -> float:
        item = self._items[0]
        if isinstance(item, bytes):
            return self.plays_until + FRAME_S - LEAD_S
        return self.plays_until if item.mark else now
