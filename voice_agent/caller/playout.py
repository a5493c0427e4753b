"""The caller's ear: a playout buffer that does what a phone or a browser does with the agent's audio.

Audio arrives in pieces of any length and is played one frame per 20 ms. A short prebuffer rides out
jitter; what the agent clears is never heard::

    arrivals   ▮▮▮ ▮ ▮▮▮▮            ▲ clear
    queue       2  3 3 …   9 9 9 9 9 0
    heard        ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮ ▮ ·      nothing after the clear
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from voice_agent.caller.audio import frame_samples, is_silent

PREBUFFER_FRAMES = 2
"""Frames gathered before playout starts or starts again: 40 ms, the usual least of a softphone."""

MAX_QUEUE_S = 120.0
"""Audio kept ahead at most. An agent that sends a whole reply at once is legal; one that never stops is bounded."""


@dataclass(frozen=True, slots=True)
class PlayedFrame:
    """One frame as heard.

    Attributes:
        pcm: Exactly one frame of PCM16; zeros where nothing was there to play.
        audible: Whether any sample is not zero.
        arrived_at: Caller's clock when the frame's first byte came in by the wire; None for an underrun.
    """

    pcm: bytes
    audible: bool
    arrived_at: float | None


class PlayoutBuffer:
    """Queue between the wire and the caller's ear. Fed in seconds of the caller's clock; has no clock of its own."""

    def __init__(self, rate: int, *, prebuffer_frames: int = PREBUFFER_FRAMES, max_queue_s: float = MAX_QUEUE_S):
        self._frame_bytes = frame_samples(rate) * 2
        self._bytes_per_s = rate * 2
        self._max_bytes = int(max_queue_s * self._bytes_per_s)
        self._prebuffer_frames = prebuffer_frames
        self._pieces: deque[tuple[bytes, float, bool]] = deque()
        self._queued = 0
        self._audible_pieces = 0
        self._offset = 0
        self._wait = prebuffer_frames
        self.overflowed_s = 0.0
        """Audio dropped because the queue was full, oldest first."""

    @property
    def queued_s(self) -> float:
        """Seconds of audio that have arrived and were not yet played."""
        return self._queued / self._bytes_per_s

    @property
    def audible_pending(self) -> bool:
        """Whether anything but silence still waits to be played."""
        return self._audible_pieces > 0

    def push(self, pcm: bytes, now: float) -> None:
        """Take audio from the wire (whole samples, any length)."""
        if not pcm:
            return
        audible = not is_silent(pcm)
        self._pieces.append((pcm, now, audible))
        self._queued += len(pcm)
        self._audible_pieces += audible
        while self._queued > self._max_bytes:
            self.overflowed_s += self._drop_oldest() / self._bytes_per_s

    def clear(self) -> float:
        """Drop all that was not yet played; return how many seconds that was."""
        dropped = self.queued_s
        self._pieces.clear()
        self._queued = self._audible_pieces = self._offset = 0
        self._wait = self._prebuffer_frames
        return dropped

    def play(self) -> PlayedFrame:
        """Play the next 20 ms. Call once per 20 ms of the caller's clock."""
        if not self._ready():
            return PlayedFrame(bytes(self._frame_bytes), False, None)
        arrived_at = self._pieces[0][1]
        taken = bytearray()
        while self._pieces and len(taken) < self._frame_bytes:
            piece, _, audible = self._pieces[0]
            part = piece[self._offset : self._offset + self._frame_bytes - len(taken)]
            taken += part
            self._offset += len(part)
            if self._offset == len(piece):
                self._pieces.popleft()
                self._audible_pieces -= audible
                self._offset = 0
        self._queued -= len(taken)
        pcm = bytes(taken).ljust(self._frame_bytes, b"\0")
        return PlayedFrame(pcm, not is_silent(pcm), arrived_at)

    def _ready(self) -> bool:
        """Start only with a full prebuffer, or when the first frame has waited as long as filling it takes."""
        if not self._pieces:
            self._wait = self._prebuffer_frames
            return False
        if self._wait == 0:
            return True
        if self._queued >= self._prebuffer_frames * self._frame_bytes:
            self._wait = 0
            return True
        self._wait -= 1
        return False

    def _drop_oldest(self) -> int:
        piece, _, audible = self._pieces.popleft()
        dropped = len(piece) - self._offset
        self._offset = 0
        self._queued -= dropped
        self._audible_pieces -= audible
        return dropped
