"""A scripted recogniser that takes its time on the loop's clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from voice_agent.speech.protocols import Priority, Transcript, Urgency


@dataclass(frozen=True, slots=True)
class RecognizerCall:
    """One call as it came in: what, how urgent, when on the loop's clock."""

    pcm: NDArray[np.int16]
    priority: Priority
    at: float

    @property
    def seconds(self) -> float:
        return len(self.pcm) / 16000


def as_asked(priority: Priority | Urgency) -> Priority:
    """The priority as it is at this instant."""
    return priority.priority if isinstance(priority, Urgency) else priority


@dataclass
class FakeRecognizer:
    """Answers each call with the next line of ``script``; the last line repeats.

    A string becomes an accepted transcript, a `Transcript` is returned as it is, an exception is raised.

    Args:
        seconds: How long each call takes on the loop's clock.

    Attributes:
        calls: All calls in order, also those that were cancelled or failed.
        cancelled: How many calls were cancelled while they ran.
    """

    script: list[str | Exception | Transcript]
    seconds: float = 0.2
    calls: list[RecognizerCall] = field(default_factory=list)
    cancelled: int = 0

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        line = self.script[min(len(self.calls), len(self.script) - 1)]
        call = RecognizerCall(pcm, as_asked(priority), asyncio.get_running_loop().time())
        self.calls.append(call)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Transcript):
            return line
        return Transcript(text=line, seconds=call.seconds, no_speech_probability=0.01, average_log_probability=-0.2)
