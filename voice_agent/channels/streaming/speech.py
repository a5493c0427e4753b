"""Agent audio on its way out of a streaming wire: resampled, cut as the far end wants it, and until when it sounds."""

from __future__ import annotations

from collections.abc import Callable

from voice_agent.audio.frames import FRAME_MS, SAMPLE_BYTES, SAMPLE_RATE, Reframer
from voice_agent.audio.resample import Resampler

FRAME_S = FRAME_MS / 1000


class OutgoingSpeech:
    """One call's agent audio. Pure: fed canonical frames and the time in seconds.

    Attributes:
        plays_until: When the far end has played all of it, at the speed of speech and without a delay of its own.
    """

    def __init__(self, rate: int, frame_ms: int | None, deliver: Callable[[bytes], None], now: float) -> None:
        """Args: ``rate`` in Hz and ``frame_ms`` as of `Serializer`; ``deliver`` takes each piece of PCM."""
        self._resampler = Resampler(SAMPLE_RATE, rate)
        self._reframer = None if frame_ms is None else Reframer(rate * frame_ms // 1000 * SAMPLE_BYTES)
        self._deliver = deliver
        self.plays_until = now

    def push(self, frame: bytes, now: float) -> None:
        """Take one frame of 20 ms."""
        self.plays_until = (self.plays_until if self.plays_until > now else now) + FRAME_S
        self._cut(self._resampler.push(frame))

    def finish(self) -> None:
        """Deliver what was kept back for the next frame, the last piece padded with silence if it must be whole."""
        self._cut(self._resampler.flush())
        if self._reframer is not None and (rest := self._reframer.flush()):
            self._deliver(rest)

    def clear(self, now: float) -> None:
        """Forget what was kept back: it is not to be heard."""
        self._resampler.flush()
        if self._reframer is not None:
            self._reframer.reset()
        self.plays_until = now

    def _cut(self, pcm: bytes) -> None:
        if self._reframer is None:
            if pcm:
                self._deliver(pcm)
        else:
            for piece in self._reframer.push(pcm):
                self._deliver(piece)
