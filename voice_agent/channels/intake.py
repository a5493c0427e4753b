"""Caller audio from a wire: any chunking in, canonical PCM out, no faster than a call can hear.

Calls live in audio time, so audio that comes faster than real time would make their clocks run
ahead. What a network stall held back is let through at once; beyond that a backlog is heard at
twice real time until it is gone, and a backlog that keeps growing loses its oldest audio::

    on the wire   ▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮▮      20 s sent within a second
    at once       ▮▮                        BURST_S
    backlog         ▮▮▮▮▮                   at most BACKLOG_S; older audio is dropped and counted
    heard         ▮▮ · ▮ · ▮ · ▮ · ▮        CATCH_UP times real time
"""

from __future__ import annotations

from collections import deque

from voice_agent.audio.frames import FRAME_BYTES, SAMPLE_BYTES, SAMPLE_RATE
from voice_agent.audio.resample import Resampler
from voice_agent.channels.limits import TokenBucket

BURST_S = 2.0
"""Audio heard at once after a stall: about what a mobile network holds back when it hands over."""
BACKLOG_S = 5.0
CATCH_UP = 2.0
_BYTES_PER_S = SAMPLE_RATE * SAMPLE_BYTES


class Intake:
    """One caller's audio. Pure: fed chunks and the time in seconds.

    Attributes:
        dropped_s: Seconds of audio dropped so far.
    """

    __slots__ = ("_backlog", "_backlog_bytes", "_bucket", "_resampler", "dropped_s")

    def __init__(self, rate: int, now: float) -> None:
        """Args: ``rate``: samples per second on the wire; ``now``: seconds of the clock `push` is fed."""
        self._resampler = Resampler(rate, SAMPLE_RATE)
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._bucket = TokenBucket(BURST_S * _BYTES_PER_S, CATCH_UP * _BYTES_PER_S, now)
        self.dropped_s = 0.0

    @property
    def waiting(self) -> bool:
        """Whether audio waits for its time."""
        return bool(self._backlog)

    def push(self, data: bytes, now: float) -> bytes:
        """Take one message of the wire, any length; return the canonical PCM to hear now, possibly none."""
        pcm = self._resampler.push(data)
        if not self._backlog and self._bucket.take(len(pcm), now):
            return pcm
        self._keep(pcm)
        return self.release(now)

    def release(self, now: float) -> bytes:
        """Return what of the backlog may be heard now."""
        due: list[bytes] = []
        while self._backlog and self._bucket.take(len(self._backlog[0]), now):
            due.append(self._backlog.popleft())
            self._backlog_bytes -= len(due[-1])
        return b"".join(due)

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until `release` has something, or None while nothing waits."""
        return self._bucket.wait_s(len(self._backlog[0]), now) if self._backlog else None

    def _keep(self, pcm: bytes) -> None:
        # Frame-sized pieces, so that the backlog is released and dropped in small steps.
        for at in range(0, len(pcm), FRAME_BYTES):
            self._backlog.append(pcm[at : at + FRAME_BYTES])
        self._backlog_bytes += len(pcm)
        while self._backlog_bytes > BACKLOG_S * _BYTES_PER_S:
            oldest = self._backlog.popleft()
            self._backlog_bytes -= len(oldest)
            self.dropped_s += len(oldest) / _BYTES_PER_S
