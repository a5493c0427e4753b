"""An in-memory wire with a caller on its far end, scripted in seconds of the loop's (virtual) clock.

The caller's lines are frames whose sample value names the line, so that `ScriptedEars` can tell from the audio
alone which words it holds, and how many of them::

    wire = FakeWire(seconds=20)
    wire.speak(2.0, "what is my balance")        # 0.3 s a word, unless told otherwise
    wire.noise(5.0, 0.12)                        # a cough: voice without words
    wire.at(6.0, lambda call: call.press_key("1"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tests.fakes.recognizer import as_asked
from voice_agent.audio.frames import FRAME_SAMPLES, SILENCE
from voice_agent.call.wire import CallInputs, MetricsMessage, TranscriptMessage, WireMessage, WireTraits
from voice_agent.speech.protocols import Priority, Transcript, Urgency, Voicing
from voice_agent.transfers import TransferReason, TransferResult, TransferTarget

FRAME_S = 0.02
SECONDS_PER_WORD = 0.3
LOUD = 3000
"""Samples from here on are voice; the excess names the line. Line 0 is noise without words."""


def voice_frame(line: int) -> bytes:
    return np.full(FRAME_SAMPLES, LOUD + line, np.int16).tobytes()


@dataclass(frozen=True, slots=True)
class Segment:
    start: float
    end: float
    line: int


class FakeDetector:
    """Voice is what is loud. Confirms after ``delay_frames`` loud frames, as real detectors do."""

    def __init__(self, delay_frames: int = 3) -> None:
        self._delay, self._loud = delay_frames, 0
        self.frames = 0

    def push(self, frame: bytes) -> Voicing:
        self.frames += 1
        loud = frame[1] >= LOUD >> 8 and frame[1] < 0x80
        self._loud = self._loud + 1 if loud else 0
        earlier = self._delay - 1 if self._loud == self._delay else 0
        return Voicing(self._loud >= self._delay, -20.0 if loud else -70.0, earlier)

    def reset(self) -> None:
        self._loud = 0


class FakeWire:
    """Implements `Wire`. The caller leaves at ``seconds`` unless the call ended before.

    Args:
        leave: What `run` returns then: ``hang_up`` or ``disconnected``.
        reports_position: The far end acknowledges what it has played, every 100 ms.
        sends_silence: False is a wire that sends frames only while the caller speaks.
        drain_s: Latency of the far end; `drain` waits for it.
        stuck: `drain`, `hang_up` and cancellation of `run` take for ever (bounded by who waits).
        media_until: No frames at all are sent after this.
        follows_state: The client asked to be told whose moment it is.
        telephone: There is a telephone line behind it, on which keys are tones.
        transfers: What becomes of each transfer: (seconds it rings, reason); the last one repeats. None: the wire
            cannot transfer.

    Attributes:
        frames: Agent frames as (loop time, frame).
        clears: Loop times of `clear`.
        frames_at_clear: How many frames had been sent by then.
        messages: Messages as (loop time, message).
        hung_up: Reasons of `hang_up`, in order.
        transferred: Targets of `transfer`, as (loop time, target).
    """

    def __init__(
        self,
        seconds: float = 10.0,
        *,
        leave: str = "hang_up",
        reports_position: bool = False,
        sends_silence: bool = True,
        drain_s: float = 0.0,
        stuck: bool = False,
        media_until: float = float("inf"),
        follows_state: bool = False,
        telephone: bool = False,
        transfers: Sequence[tuple[float, TransferReason]] | None = None,
    ) -> None:
        self.traits = WireTraits(
            "fake", reports_position, follows_state, can_transfer=transfers is not None, can_send_digits=telephone
        )
        self._transfers = list(transfers or ())
        self.transferred: list[tuple[float, TransferTarget]] = []
        self._seconds, self._leave, self._sends_silence = seconds, leave, sends_silence
        self._drain_s, self._stuck, self._media_until = drain_s, stuck, media_until
        self._segments: list[Segment] = []
        self._actions: list[tuple[float, Callable[[CallInputs], object]]] = []
        self._closed: asyncio.Event = asyncio.Event()
        self._play_until = 0.0
        self.lines: list[str] = [""]
        self.frames: list[tuple[float, bytes]] = []
        self.clears: list[float] = []
        self.frames_at_clear: list[int] = []
        self.messages: list[tuple[float, WireMessage]] = []
        self.hung_up: list[str] = []
        self.after_end = 0
        self.began = 0.0

    # The script

    def speak(self, at: float, text: str, seconds: float | None = None) -> float:
        """The caller says ``text`` at ``at``; returns when the line ends."""
        self.lines.append(text)
        end = at + (seconds if seconds is not None else SECONDS_PER_WORD * len(text.split()))
        self._segments.append(Segment(at, end, len(self.lines) - 1))
        return end

    def noise(self, at: float, seconds: float) -> float:
        """Voice without words: a cough, a laugh."""
        self._segments.append(Segment(at, at + seconds, 0))
        return at + seconds

    def at(self, at: float, action: Callable[[CallInputs], object]) -> None:
        """Run ``action`` with the call at ``at``."""
        self._actions.append((at, action))

    # Wire

    async def run(self, call: CallInputs) -> str:
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        tick = 0
        while not self._closed.is_set():
            now = tick * FRAME_S
            if now >= self._seconds:
                self._closed.set()
                return self._leave
            self._act(now, call)
            frame = self._frame(now)
            if now < self._media_until and (frame is not SILENCE or self._sends_silence):
                call.hear(frame)
            if self.traits.reports_position and tick % 5 == 0:
                self._acknowledge(call, loop.time())
            tick += 1
            await self._sleep(self.began + tick * FRAME_S - loop.time())
        return "closed"

    def send_audio(self, frame: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if self._closed.is_set():
            self.after_end += 1
            return
        self._play_until = max(self._play_until, now) + FRAME_S
        self.frames.append((now, frame))

    def clear(self) -> None:
        now = asyncio.get_running_loop().time()
        self._play_until = min(self._play_until, now)
        self.clears.append(now)
        self.frames_at_clear.append(len(self.frames))

    def send(self, message: WireMessage) -> None:
        if not self._closed.is_set():
            self.messages.append((asyncio.get_running_loop().time(), message))

    async def drain(self, timeout_s: float) -> bool:
        if self._stuck:
            await asyncio.sleep(3600)
        left = self._play_until + self._drain_s - asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, min(left, timeout_s)))
        return left <= timeout_s

    async def hang_up(self, reason: str) -> None:
        self.hung_up.append(reason)
        self._closed.set()
        if self._stuck:
            await asyncio.sleep(3600)

    async def transfer(self, target: TransferTarget) -> TransferResult:
        self.transferred.append((asyncio.get_running_loop().time(), target))
        seconds, reason = self._transfers.pop(0) if len(self._transfers) > 1 else self._transfers[0]
        await asyncio.sleep(seconds)
        return TransferResult(reason)

    # What a test reads

    def audible(self, start: float = 0.0, end: float = float("inf")) -> float:
        """Seconds of agent audio that arrived within [start, end)."""
        return FRAME_S * sum(1 for t, frame in self.frames if start <= t < end and frame.count(0) != len(frame))

    def last_frame_before(self, end: float) -> float:
        return max((t for t, _ in self.frames if t < end), default=-1.0)

    def transcripts(self, role: str, *, final: bool = True) -> list[str]:
        return [
            m.text
            for _, m in self.messages
            if isinstance(m, TranscriptMessage) and m.role == role and m.final is final and m.heard is None
        ]

    def timelines(self) -> list[MetricsMessage]:
        return [m for _, m in self.messages if isinstance(m, MetricsMessage)]

    def _frame(self, now: float) -> bytes:
        for segment in self._segments:
            if segment.start - 1e-6 <= now < segment.end - 1e-6:
                return voice_frame(segment.line)
        return SILENCE

    def _act(self, now: float, call: CallInputs) -> None:
        due = [action for at, action in self._actions if at <= now + 1e-6]
        self._actions = [(at, action) for at, action in self._actions if at > now + 1e-6]
        for action in due:
            action(call)

    def _acknowledge(self, call: CallInputs, now: float) -> None:
        played = sum(1 for _ in self.frames) * FRAME_S - max(0.0, self._play_until - now)
        call.played(max(0.0, played) * 1000)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.sleep(max(0.0, seconds))
        except asyncio.CancelledError:
            if self._stuck:
                await asyncio.sleep(3600)
            raise


@dataclass
class ScriptedEars:
    """A recogniser that hears from a `FakeWire`'s audio which line it holds and how many of its words.

    Attributes:
        requests: (loop time, priority, seconds of audio) of every call.
        fail: Raise this instead of answering.
    """

    wire: FakeWire
    seconds: float = 0.2
    fail: Exception | None = None
    requests: list[tuple[float, Priority, float]] = field(default_factory=list)

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        self.requests.append((asyncio.get_running_loop().time(), as_asked(priority), len(pcm) / 16000))
        await asyncio.sleep(self.seconds)
        if self.fail is not None:
            raise self.fail
        text = " ".join(filter(None, (self._heard(pcm, int(line)) for line in self._lines_in(pcm))))
        return Transcript(text, len(pcm) / 16000, accepted=bool(text))

    @staticmethod
    def _lines_in(pcm: NDArray[np.int16]) -> list[int]:
        loud = pcm[pcm > LOUD]
        values, first = np.unique(loud, return_index=True)
        return [int(values[i]) - LOUD for i in np.argsort(first)]

    def _heard(self, pcm: NDArray[np.int16], line: int) -> str:
        frames = int((pcm == LOUD + line).sum()) / FRAME_SAMPLES
        segment = next(s for s in self.wire._segments if s.line == line)
        words = self.wire.lines[line].split()
        share = frames * FRAME_S / (segment.end - segment.start)
        count = round(min(1.0, share) * len(words))
        return " ".join(words[: max(count, 1 if share > 0.3 else 0)])
