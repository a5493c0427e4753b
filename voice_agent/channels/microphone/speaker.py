"""What waits for the speaker: agent audio with marks in it, pulled by the sound card. Pure.

::

    pushed   ▮▮▮▮▮ ▯ ▮▮▮         ▯ a mark: told when the audio before it has been pulled
    pulled    ▮ ▮ ▮ ▮ ▮·▮ ▮ ▮
    empty                 · · ·  silence, and PREBUFFER_S again before the next sound

Frames come every 20 ms and not to the millisecond, so a little is gathered before sound begins: else each late frame
would be a click.
"""

from __future__ import annotations

from collections import deque

PREBUFFER_S = 0.04
"""Audio gathered before sound begins, unless no more comes for as long."""
MAX_AUDIO_S = 2.0
"""Audio that waits at most; older audio is dropped."""
MAX_ITEMS = 1000
_BYTES = 2


class SpeakerQueue:
    """Attributes: ``dropped_s``: audio that had to go, in seconds."""

    def __init__(self, rate: int) -> None:
        """Args: ``rate`` in Hz, of int16 mono."""
        self._rate = rate
        self._items: deque[bytes | str] = deque()
        self._queued = 0
        self._waited_s = 0.0
        self._sounds = False
        self.dropped_s = 0.0

    @property
    def queued_s(self) -> float:
        """Seconds of audio that wait."""
        return self._queued / _BYTES / self._rate

    def push(self, pcm: bytes) -> None:
        """Queue audio, whole samples of any number."""
        if pcm:
            self._items.append(pcm)
            self._queued += len(pcm)
        while self.queued_s > MAX_AUDIO_S:
            oldest = next(index for index, item in enumerate(self._items) if isinstance(item, bytes))
            size = len(self._items[oldest])
            del self._items[oldest]
            self._queued -= size
            self.dropped_s += size / _BYTES / self._rate

    def mark(self, name: str) -> None:
        """Queue a mark behind the audio so far. Of a speaker that has stopped pulling, only `MAX_ITEMS` are kept."""
        if len(self._items) < MAX_ITEMS:
            self._items.append(name)

    def clear(self) -> None:
        """Drop all audio that was not pulled, and the marks in it."""
        self._items.clear()
        self._queued, self._sounds, self._waited_s = 0, False, 0.0

    def pull(self, samples: int) -> tuple[bytes, list[tuple[str, float]]]:
        """Return this many samples, silence where there is nothing, and the marks that they come to.

        Each mark comes with its place within the samples, in seconds.
        """
        self._begin(samples / self._rate)
        pieces, filled, marks = [], 0, list[tuple[str, float]]()
        wanted = samples * _BYTES if self._sounds or not self._queued else 0
        while self._items and (filled < wanted or isinstance(self._items[0], str)):
            item = self._items.popleft()
            if isinstance(item, str):
                marks.append((item, filled / _BYTES / self._rate))
                continue
            if len(item) > wanted - filled:
                self._items.appendleft(item[wanted - filled :])
                item = item[: wanted - filled]
            pieces.append(item)
            filled += len(item)
        self._queued -= filled
        if not self._queued:
            self._sounds, self._waited_s = False, 0.0
        return b"".join(pieces).ljust(samples * _BYTES, b"\0"), marks

    def _begin(self, seconds: float) -> None:
        if self._sounds or not self._queued:
            return
        if self.queued_s >= PREBUFFER_S or self._waited_s >= PREBUFFER_S:
            self._sounds = True
        self._waited_s += seconds
