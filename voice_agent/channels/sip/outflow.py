"""When each packet of the agent's side leaves: one every 20 ms, speech or silence, so that no router and no exchange
takes the line for dead. Pure: time comes in as seconds.

::

    speech    ▮▮▮▮▮▮▮▮              ▮▮▮▮▮          released by the playout at its own instants
    packets   ▮▮▮▮▮▮▮▮ · · · · · · ·▮▮▮▮▮ · · ·    what comes at its time leaves at once; silence fills the rest
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from voice_agent.audio.frames import FRAME_MS

FRAME_S = FRAME_MS / 1000
LEAD_S = FRAME_S
"""A frame may leave this much before its time: the playout's clock and ours tick at different instants."""
GRACE_S = 0.035
"""Speech whose next frame is later than this since the last one has stopped; silence goes on."""
STALL_S = 0.1
"""After a longer standstill of ours the timestamps jump: what was missed is not made up."""
MAX_AUDIO_S = 2.0
MAX_FRAMES = round(MAX_AUDIO_S / FRAME_S)
_EPSILON_S = 1e-6


@dataclass(frozen=True, slots=True)
class Due:
    """A packet to send now. ``pcm`` None: silence. ``skipped``: frames that nobody sent before it. ``first``: speech
    begins with it."""

    pcm: bytes | None = field(repr=False)
    skipped: int = 0
    first: bool = False


class Outflow:
    """Attributes: ``plays_until``: when all speech sent so far will have been played, apart from the way there."""

    __slots__ = ("_frames", "_next_at", "_silent", "_spoke_at", "plays_until")

    def __init__(self, now: float) -> None:
        self._frames: deque[bytes] = deque()
        self._next_at = self._spoke_at = self.plays_until = now
        self._silent = True

    @property
    def waiting(self) -> int:
        """Frames of speech that wait for their time."""
        return len(self._frames)

    def add(self, frame: bytes) -> bool:
        """Take a frame of speech. Returns False when the oldest had to go for it."""
        self._frames.append(frame)
        if len(self._frames) <= MAX_FRAMES:
            return True
        self._frames.popleft()
        return False

    def clear(self, now: float) -> None:
        """Drop all speech that has not left."""
        self._frames.clear()
        self.plays_until = min(self.plays_until, now)

    def due(self, now: float, *, tick: bool) -> Iterator[Due]:
        """Yield what leaves now. ``tick``: the clock asks, so silence may fill a gap."""
        skipped = 0
        if now - self._next_at > STALL_S:
            skipped = int((now - self._next_at) / FRAME_S)
            self._next_at += skipped * FRAME_S
        if self._frames and self._silent:
            # Silence ran a little behind the clock; speech does not have to.
            self._next_at = max(self._next_at, now)
        while self._frames and now >= self._next_at - LEAD_S - _EPSILON_S:
            yield Due(self._frames.popleft(), skipped, self._silent)
            skipped, self._silent = 0, False
            self._next_at += FRAME_S
            self._spoke_at = now
            self.plays_until = max(self.plays_until, self._next_at)
        if tick and not self._frames and self._lacks_a_frame(now):
            self._silent = True
            self._next_at += FRAME_S
            yield Due(None, skipped)
        elif skipped:
            self._next_at -= skipped * FRAME_S

    def _lacks_a_frame(self, now: float) -> bool:
        if self._silent:
            return now >= self._next_at - FRAME_S / 4
        return now - self._spoke_at >= GRACE_S and now >= self._next_at
