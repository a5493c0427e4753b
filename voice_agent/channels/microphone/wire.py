"""The caller at this machine: a microphone and a speaker, each with a stream of its own.

::

    microphone ─▶ PortAudio's thread ─▶ loop ─▶ call         bounded; older audio is dropped
    speaker    ◀─ PortAudio's thread ◀─ SpeakerQueue ◀─ call  and the marks that it comes to, back to the loop

One stream for both directions loses audio where the two devices have clocks of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.audio.level import QUIETEST_DBFS, dbfs
from voice_agent.audio.resample import Resampler
from voice_agent.call.wire import CallInputs, MarkMessage, WireMessage, WireTraits
from voice_agent.channels.intake import Intake
from voice_agent.channels.microphone.devices import SoundDevice, rate_of
from voice_agent.channels.microphone.speaker import SpeakerQueue

log = logging.getLogger(__name__)

CHANNEL = "microphone"
LATENCY_S = 0.06
"""What the sound system may hold of either direction. Less, and a busy machine clicks."""
BLOCK_S = 0.01
MAX_PENDING = 100
"""Blocks of the microphone that may wait for the loop; more are dropped."""
LOOK_S = 0.25
"""How often it is looked whether the devices are still there."""
SILENT_S = 3.0
"""Without a block from the microphone, silence included, the sound system is gone, whatever it says of its streams."""
CLOSE_S = 2.0
"""Limit on opening and on closing both streams."""
OPEN_S = 10.0


class MicrophoneWire:
    """Implements `voice_agent.call.wire.Wire`.

    Args:
        sounddevice: The module of that name (`devices.load`).
        on_message: Is told what a client of ours would be.
    """

    traits = WireTraits(CHANNEL, reports_position=True, echoes_marks=True)

    def __init__(
        self,
        sounddevice: Any,
        microphone: SoundDevice,
        speaker: SoundDevice,
        on_message: Callable[[WireMessage], None] = lambda message: None,
    ) -> None:
        """Must be made on the running loop.

        Raises:
            RemediableError: A device cannot be opened.
        """
        self._sounddevice, self._on_message = sounddevice, on_message
        self._microphone, self._speaker = microphone, speaker
        self._rate_in = rate_of(sounddevice, microphone, is_input=True)
        self._rate_out = rate_of(sounddevice, speaker, is_input=False)
        self._loop = asyncio.get_running_loop()
        self._intake = Intake(self._rate_in, self._loop.time())
        self._outgoing = Resampler(SAMPLE_RATE, self._rate_out)
        self._queue, self._lock = SpeakerQueue(self._rate_out), threading.Lock()
        self._pending = 0
        self._block_at = self._loop.time()
        self._call: CallInputs | None = None
        self._over: asyncio.Future[str] = self._loop.create_future()
        self._drained: asyncio.Future[str] | None = None
        self._echoes: set[asyncio.TimerHandle] = set()
        self.level_in_dbfs = self.level_out_dbfs = QUIETEST_DBFS
        """Levels of the latest block, for meters."""
        self.lost_blocks = 0
        """Blocks in which the sound system lost audio, or had none to play."""

    # The two directions

    async def run(self, call: CallInputs) -> str:
        self._call = call
        streams: list[Any] = []
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, streams))
        try:
            async with asyncio.timeout(OPEN_S):
                await asyncio.shield(opening)
            self._block_at = self._loop.time()
            while not self._over.done():
                await asyncio.wait({self._over}, timeout=LOOK_S)
                is_silent = self._loop.time() - self._block_at > SILENT_S
                if is_silent or not all(stream.active for stream in streams):
                    log.warning("a sound device is gone")
                    self._end("disconnected")
        except (self._sounddevice.PortAudioError, TimeoutError) as fault:
            log.error("the sound devices cannot be opened: %s", fault)
            self._end("disconnected")
        finally:
            self._end("disconnected")
            self._call = None
            for echo in self._echoes:
                echo.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await asyncio.to_thread(_close, streams)
        return self._over.result()

    def leave(self) -> None:
        """The caller hangs up."""
        self._end("hang_up")

    def _open(self, streams: list[Any]) -> None:
        """Open both streams. Runs on a thread: sound systems take their time."""
        common = {"channels": 1, "dtype": "int16", "latency": LATENCY_S}
        make = self._sounddevice
        streams.append(
            make.RawInputStream(
                device=self._microphone.index,
                samplerate=self._rate_in,
                blocksize=int(self._rate_in * BLOCK_S),
                callback=self._recorded,
                **common,
            )
        )
        streams.append(
            make.RawOutputStream(
                device=self._speaker.index,
                samplerate=self._rate_out,
                blocksize=int(self._rate_out * BLOCK_S),
                callback=self._wanted,
                **common,
            )
        )
        for stream in streams:
            stream.start()
        if self._over.done():
            _close(streams)  # it took so long that nobody waits any more

    def _recorded(self, data: Any, frames: int, times: Any, status: Any) -> None:
        """The sound card has recorded something. On PortAudio's thread."""
        if status:
            self.lost_blocks += 1
        with self._lock:
            if self._pending >= MAX_PENDING:
                return
            self._pending += 1
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            self._loop.call_soon_threadsafe(self._hear, bytes(data))

    def _hear(self, pcm: bytes) -> None:
        with self._lock:
            self._pending -= 1
        self._block_at = self._loop.time()
        self.level_in_dbfs = dbfs(pcm)
        if self._call is not None and not self._over.done():
            heard = self._intake.push(pcm, self._loop.time()) or self._intake.release(self._loop.time())
            if heard:
                self._call.hear(heard)

    def _wanted(self, data: Any, frames: int, times: Any, status: Any) -> None:
        """The sound card wants something to play. On PortAudio's thread."""
        if status:
            self.lost_blocks += 1
        with self._lock:
            pcm, marks = self._queue.pull(frames)
        data[:] = pcm
        self.level_out_dbfs = dbfs(pcm)
        if marks:
            latency_s = max(0.0, times.outputBufferDacTime - times.currentTime)
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._come_to, marks, latency_s)

    def _come_to(self, marks: list[tuple[str, float]], latency_s: float) -> None:
        """Marks are on their way through the sound card: tell of each when it is heard."""
        self._echoes = {echo for echo in self._echoes if not echo.cancelled() and echo.when() > self._loop.time()}
        for name, at_s in marks:
            self._echoes.add(self._loop.call_later(latency_s + at_s, self._reached, name))

    def _reached(self, name: str) -> None:
        if name == _END:
            if self._drained is not None and not self._drained.done():
                self._drained.set_result(name)
        elif self._call is not None and not self._over.done():
            self._call.mark_reached(name)

    # What the call asks of its wire

    def send_audio(self, frame: bytes) -> None:
        if not self._over.done():
            pcm = self._outgoing.push(frame)
            with self._lock:
                self._queue.push(pcm)

    def clear(self) -> None:
        self._outgoing.flush()
        with self._lock:
            self._queue.clear()

    def send(self, message: WireMessage) -> None:
        if self._over.done():
            return
        if isinstance(message, MarkMessage):
            with self._lock:
                self._queue.mark(message.name)
        else:
            self._on_message(message)

    async def drain(self, timeout_s: float) -> bool:
        """True once all audio has left the speaker."""
        if self._over.done():
            return False
        come: asyncio.Future[str] = self._loop.create_future()
        self._drained = come
        rest = self._outgoing.flush()
        with self._lock:
            self._queue.push(rest)
            self._queue.mark(_END)
        await asyncio.wait({come, self._over}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return come.done()

    async def hang_up(self, reason: str) -> None:
        self._end("closed")

    def _end(self, reason: str) -> None:
        """End the run, once; later reasons do not count."""
        if not self._over.done():
            self._over.set_result(reason)


_END = "end of all audio"


def _close(streams: list[Any]) -> None:
    for stream in streams:
        stream.abort(ignore_errors=True)
        stream.close(ignore_errors=True)
