"""Records a call in stereo: caller left, agent as heard right, 16 kHz.

Both channels lie on the call's own clock. A second of audio is handed to the disk when it can no longer
change: what the far end was told to drop was not heard, and is silence in the recording::

    left    ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇│
    right   ▇▇▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁│
            written ──────▶│ may change │ now
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import numpy as np

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.call.recording_file import Format, RecordingFile
from voice_agent.telemetry.metrics import RECORDINGS_FAILED

log = logging.getLogger(__name__)

BLOCK_SAMPLES = SAMPLE_RATE
SETTLE_SAMPLES = SAMPLE_RATE // 2
"""How long a sample may still change. More than any lead ahead of the wall clock."""
QUEUE_BLOCKS = 30
"""Seconds of audio that may wait for a slow disk; beyond this the recording ends."""
DRIFT_SAMPLES = SAMPLE_RATE // 5
"""Caller audio this far behind the clock had a gap: the wire sent nothing."""
WINDOW_SAMPLES = BLOCK_SAMPLES * 4


class Recorder:
    """Records one call. Anything the disk does ends the recording, never the call."""

    def __init__(self, directory: Path, call_id: str, format: Format = "wav") -> None:
        self._path, self._format = directory / f"{call_id}.{format}", format
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUE_BLOCKS)
        self._window = np.zeros((WINDOW_SAMPLES, 2), "<i2")
        self._base = 0
        self._left = 0
        self._heard = False
        self._began: float | None = None
        self._failed = self._closed = False
        self._written = asyncio.Event()

    @property
    def path(self) -> Path:
        return self._path

    @property
    def failed(self) -> bool:
        """The recording ended before the call did."""
        return self._failed

    @property
    def seconds(self) -> float:
        """Length so far."""
        return max(self._base, self._left) / SAMPLE_RATE

    def begin(self, now: float) -> None:
        """The recording's first sample is heard at ``now``; by default, when the first audio comes."""
        self._sample(now)

    def caller(self, pcm: bytes, now: float) -> None:
        """Caller audio as it came in."""
        at = self._sample(now)
        samples = np.frombuffer(pcm[: len(pcm) & ~1], "<i2")
        begin = at - len(samples)
        if begin - self._left > DRIFT_SAMPLES or not self._heard:
            self._left = max(self._left, begin)
        self._heard = True
        self._put(samples, self._left, 0)
        self._left += len(samples)
        self._flush(at)

    def agent(self, frame: bytes, plays_at: float) -> None:
        """One agent frame and the instant at which the far end plays it."""
        at = self._sample(plays_at)
        self._put(np.frombuffer(frame, "<i2"), at, 1)
        self._flush(at - SETTLE_SAMPLES)

    def clear(self, now: float) -> None:
        """Agent audio from ``now`` on was dropped before it was heard."""
        at = max(0, self._sample(now) - self._base)
        self._window[at:, 1] = 0

    async def run(self) -> None:
        """Write what comes, off the loop, until closed, cancelled or failed."""
        try:
            await self._write()
        finally:
            self._written.set()

    async def close(self) -> None:
        """Write the rest. Returns when the file is whole; the caller bounds the wait. Idempotent."""
        if not self._closed and not self._failed:
            self._closed = True
            end = max(self._left, int(np.flatnonzero(self._window[:, 1])[-1:].sum()) + self._base + 1)
            while self._base < end and not self._failed:
                self._emit(min(BLOCK_SAMPLES, end - self._base))
            await self._queue.put(None)
        await self._written.wait()

    async def _write(self) -> None:
        writer: RecordingFile | None = None
        try:
            writer = await asyncio.to_thread(RecordingFile, self._path, self._format)
            while (block := await self._next_block()) is not None:
                await asyncio.to_thread(writer.write, block)
        except Exception as error:  # noqa: BLE001 - nothing of a recording may end the call
            self._broke(error)
        finally:
            if writer is not None:
                try:
                    # Not awaited: at cancellation nothing may be, and a close is one small write.
                    writer.close()
                except Exception as error:  # noqa: BLE001 - nothing of a recording may end the call
                    self._broke(error)

    def _broke(self, error: Exception) -> None:
        """The disk failed, or a codec did."""
        if not isinstance(error, OSError):
            log.exception("a recording could not be written")
        self._fail(str(getattr(error, "strerror", None) or error or type(error).__name__))

    async def _next_block(self) -> bytes | None:
        """Return the next block, None at the end. Time goes on where neither side sends anything."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(BLOCK_SAMPLES / SAMPLE_RATE):
                    return await self._queue.get()
            except TimeoutError:
                if self._began is not None and not self._closed:
                    self._flush(self._sample(loop.time()))

    def _sample(self, instant: float) -> int:
        if self._began is None:
            self._began = instant
        return max(0, round((instant - self._began) * SAMPLE_RATE))

    def _put(self, samples: np.ndarray[tuple[int], np.dtype[np.int16]], at: int, channel: int) -> None:
        if self._failed or self._closed:
            return
        while at + len(samples) - self._base > WINDOW_SAMPLES:
            self._emit(BLOCK_SAMPLES)
        start = at - self._base
        if start < 0:
            samples, start = samples[-start:], 0
        self._window[start : start + len(samples), channel] = samples

    def _flush(self, settled: int) -> None:
        while settled - SETTLE_SAMPLES - self._base >= BLOCK_SAMPLES and not self._failed:
            self._emit(BLOCK_SAMPLES)

    def _emit(self, count: int) -> None:
        """Hand the oldest samples to the disk and move the window on."""
        block = self._window[:count].tobytes()
        self._window[:-count] = self._window[count:].copy()
        self._window[-count:] = 0
        self._base += count
        if self._failed:
            return
        try:
            self._queue.put_nowait(block)
        except asyncio.QueueFull:
            self._fail("the disk is too slow")

    def _fail(self, why: str) -> None:
        if not self._failed:
            self._failed = True
            RECORDINGS_FAILED.inc()
            log.error(
                "the recording %s ended early: %s. Free space or choose another recording.directory; the call goes on.",
                self._path,
                why,
            )
