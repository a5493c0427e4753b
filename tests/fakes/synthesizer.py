"""A scripted `Synthesizer` in the loop's (virtual) time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.fakes.voice import fake_speech
from voice_agent.speech.protocols import Priority, Speech


class FakeSynthesizer:
    """Implements `voice_agent.speech.protocols.Synthesizer`.

    Attributes:
        asked: (text, priority) of each call, in order.
        running, most_running: Calls inside now, and at most at once.
        cancelled: Texts whose synthesis was cancelled.
    """

    def __init__(
        self, *, seconds: float = 0.0, script: Sequence[Exception | bytes | None] = (), identity: str = "fake/1"
    ) -> None:
        """Script the fake.

        Args:
            seconds: How long each synthesis takes.
            script: Outcome of each call in turn: an exception to raise, bytes to return as PCM, or None
                for good speech. Calls beyond it are good.
        """
        self._seconds = seconds
        self._script = list(script)
        self.identity = identity
        self.asked: list[tuple[str, Priority]] = []
        self.running = 0
        self.most_running = 0
        self.cancelled: list[str] = []

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.asked]

    async def synthesize(self, text: str, *, priority: Priority = Priority.SPEECH) -> Speech:
        self.asked.append((text, priority))
        outcome = self._script.pop(0) if self._script else None
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self._seconds)
        except asyncio.CancelledError:
            self.cancelled.append(text)
            raise
        finally:
            self.running -= 1
        if isinstance(outcome, Exception):
            raise outcome
        speech = fake_speech(text)
        return speech if outcome is None else Speech(text, outcome, ())
