"""What the rest of the house may ask of a speech engine.

All audio here is canonical PCM: 16 kHz, mono, int16, little-endian. Engines that work at another
rate convert inside. Engines run in the shared pool (`voice_agent.speech.pool`), never on the loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_BYTES, SAMPLE_RATE


class Priority(IntEnum):
    """Order in which waiting speech jobs run; lower runs first."""

    FIRST_AUDIO = 0
    """First piece of a live reply: the caller is waiting in silence."""
    FINAL_TRANSCRIPT = 1
    """Transcript of a committed utterance."""
    SPEECH = 2
    """Later pieces of a reply; earlier ones are still playing."""
    SPECULATIVE_TRANSCRIPT = 3
    """Transcript started at a pause, before the endpoint."""
    PARTIAL_TRANSCRIPT = 4
    WARM_UP = 5


class Urgency:
    """A priority that may still rise while its job waits: what was a guess has become what somebody waits for.

    Attributes:
        priority: The priority as it is now.
    """

    __slots__ = ("_watchers", "priority")

    def __init__(self, priority: Priority) -> None:
        self.priority = priority
        self._watchers: list[Callable[[], None]] = []

    def rise(self, priority: Priority) -> None:
        """Become as urgent as ``priority``; never less urgent than before."""
        if priority < self.priority:
            self.priority = priority
            for watcher in tuple(self._watchers):
                watcher()

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` whenever the priority has risen. Returns the unsubscriber."""
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)


class EngineError(Exception):
    """A speech engine failed on one job. The call goes on; the operator gets the cause."""


class PoolOverloaded(EngineError):
    """The shared pool's queue is full; the job was refused rather than queued without bound."""


@dataclass(frozen=True, slots=True)
class Voicing:
    """What a voice detector says of one 20 ms frame.

    Attributes:
        voiced: The frame belongs to confirmed speech.
        level_dbfs: Root mean square of the frame, in dB relative to full scale (-96 … 0).
        earlier_frames: On the first frame of a stretch of speech: how many frames just before it are
            known by now to be speech as well. A counter of voice adds them, so that the time a
            detector takes to be sure is not taken from the caller's voice.
    """

    voiced: bool
    level_dbfs: float
    earlier_frames: int = 0


class VoiceDetector(Protocol):
    """Voice activity detection for one stream. Keeps state; one instance per call."""

    def push(self, frame: bytes) -> Voicing:
        """Judge the next 20 ms frame (640 bytes). Must return within about a millisecond."""
        ...

    def reset(self) -> None:
        """Forget the stream so far."""
        ...


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a recogniser heard.

    Attributes:
        text: The words, with punctuation as the engine gives it; empty when nothing was said.
        seconds: Length of the audio that was transcribed.
        no_speech_probability: 0 … 1, the engine's own estimate.
        average_log_probability: Mean log-probability per token (0 is certain).
        stop_probability: 0 … 1, how surely a sentence ends after the last word; None if the engine cannot tell.
        accepted: The guards against invented phrases let it pass. A caller's turn needs this.
    """

    text: str
    seconds: float
    no_speech_probability: float = 0.0
    average_log_probability: float = 0.0
    accepted: bool = True
    stop_probability: float | None = None


class Recognizer(Protocol):
    """Speech to text for whole utterances."""

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        """Transcribe one utterance, any length up to the configured bound.

        A cancelled await drops the job if it has not started; a running one finishes unheard.

        Raises:
            EngineError: The engine failed, or the pool refused the job.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Where a stretch of text lies in audio: characters ``[start, end)`` sound during samples ``[first, last)``."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Speech:
    """Synthesised audio of one piece of text.

    Attributes:
        text: The display text that was asked for.
        pcm: Canonical PCM bytes (16 kHz mono int16).
        spans: One span per word of ``text``, in order; sample offsets into ``pcm``.
        failed: Every engine failed; ``pcm`` is the fallback audio and ``text`` was not spoken.
    """

    text: str
    pcm: bytes
    spans: tuple[TextSpan, ...]
    failed: bool = False

    @property
    def seconds(self) -> float:
        return len(self.pcm) / (SAMPLE_BYTES * SAMPLE_RATE)


class Synthesizer(Protocol):
    """Text to speech, one sentence or clause at a time."""

    @property
    def identity(self) -> str:
        """Voice, model version and rate: part of every cache key."""
        ...

    async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
        """Speak one piece of display text (already split; at most a few hundred characters).

        Raises:
            EngineError: The engine failed, or the pool refused the job.
        """
        ...


class Voice(Protocol):
    """What a call speaks with: a synthesiser behind the response cache, retry and fallback."""

    def cached(self, text: str) -> Speech | None:
        """Return the speech for ``text`` if it is in memory. Never blocks."""
        ...

    def speak(self, text: str, *, canned: bool = False, first: bool = False) -> AsyncGenerator[Speech, None]:
        """Yield the pieces of ``text`` in order. Concatenated ``Speech.text`` equals ``text``.

        Engine faults do not raise: after retry and fallback engine the piece comes as
        ``Speech.failed`` with the fallback audio.

        Args:
            canned: The text comes from ``responses.yml``: keep its audio in the cache.
            first: The caller is waiting for it; use ``Priority.FIRST_AUDIO``.
        """
        ...
