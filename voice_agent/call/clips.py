"""The audio of one turn that waits for its release, and the place that playout has come to in it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from voice_agent.audio.frames import FRAME_BYTES, FRAME_SAMPLES, SAMPLE_RATE
from voice_agent.audio.level import fade_out

_ROOM_BYTES = FRAME_BYTES * 25
_BYTES_PER_SECOND = SAMPLE_RATE * 2


@dataclass(frozen=True, slots=True)
class _Clip:
    pcm: bytes
    first: int
    aside: bool


def frames_of(pcm: bytes) -> int:
    """Return how many whole frames hold ``pcm``."""
    return math.ceil(len(pcm) / FRAME_BYTES)


class Clips:
    """Pieces of audio, canonical PCM, in order; true while there is something to release."""

    def __init__(self) -> None:
        self._clips: deque[_Clip] = deque()
        self._at = self._offset = 0

    def __bool__(self) -> bool:
        return self._at < len(self._clips)

    def add(self, pcm: bytes, first: int, *, aside: bool) -> None:
        """Put a piece last, padded to whole frames; ``first`` is the position of its first sample."""
        self._clips.append(_Clip(pcm.ljust(frames_of(pcm) * FRAME_BYTES, b"\0"), first, aside))

    def take(self) -> tuple[bytes, bool, bool]:
        """Return the next frame, whether it is of an aside, and whether this is a moment to ask for more audio."""
        clip = self._clips[self._at]
        frame = clip.pcm[self._offset : self._offset + FRAME_BYTES]
        self._offset += FRAME_BYTES
        if self._offset < len(clip.pcm):
            return frame, clip.aside, self._offset % _ROOM_BYTES == 0
        self._at, self._offset = self._at + 1, 0
        # The clip before is kept, since a resume may go back into it.
        while self._at > 1:
            self._clips.popleft()
            self._at -= 1
        return frame, clip.aside, True

    def fade(self, position: int, samples: int) -> bytes:
        """Return up to ``samples`` of what sounds from ``position`` on, within a piece, fading out, in whole frames."""
        for clip in self._clips:
            into = (position - clip.first) * 2
            if 0 <= into < len(clip.pcm):
                cut = clip.pcm[into : into + samples * 2]
                return fade_out(cut, len(cut) // 2).ljust(frames_of(cut) * FRAME_BYTES, b"\0")
        return b""

    def seek(self, position: int) -> None:
        """Go on from ``position``, on a frame boundary."""
        for index, clip in enumerate(self._clips):
            if position < clip.first + len(clip.pcm) // FRAME_BYTES * FRAME_SAMPLES:
                self._at, self._offset = index, max(0, position - clip.first) * 2
                return
        self._at, self._offset = len(self._clips), 0

    def drop_rest(self) -> float:
        """Forget all pieces but the one that has begun to sound; return how many seconds of it are left."""
        begun = self._offset > 0
        while len(self._clips) > self._at + begun:
            self._clips.pop()
        return (len(self._clips[self._at].pcm) - self._offset) / _BYTES_PER_SECOND if begun else 0.0

    def clear(self) -> None:
        """Forget everything."""
        self._clips.clear()
        self._at = self._offset = 0
