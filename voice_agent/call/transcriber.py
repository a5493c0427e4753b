"""Runs the recogniser for one call: one job at a time, stale ones dropped, every one bounded in time.

::

    caller    ▇▇▇▇▇▁▁▁▁▇▇▇▇▇▁▁▁▁▁▁▁▁▁
    jobs            ├─ r0 ─┤  ├─ r1 ─┤        r0 came to a partial, r1 is the transcript at the endpoint
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from voice_agent.call.utterance import Utterance
from voice_agent.dialogue.cancellation import CancelReason, CancelToken, TurnCancelled, race
from voice_agent.speech.protocols import EngineError, Priority, Recognizer, Transcript, Urgency
from voice_agent.telemetry.metrics import ENGINE_FAILURES

log = logging.getLogger(__name__)

CANCEL_GRACE_S = 0.2


@dataclass(eq=False)
class Recognition:
    """One run of the recogniser on what an utterance held at ``revision``.

    Attributes:
        priority: What it was asked for.
        urgency: How urgent it is by now.
        voice_ms: Voice in what is transcribed.
    """

    utterance: Utterance
    revision: int
    priority: Priority
    urgency: Urgency = field(init=False)
    voice_ms: int = field(init=False)
    token: CancelToken = field(default_factory=CancelToken)

    def __post_init__(self) -> None:
        self.urgency = Urgency(self.priority)
        self.voice_ms = self.utterance.voice_ms


class Transcriber:
    """Owns the recogniser's awaits.

    Args:
        on_done: Called with the recognition and its transcript, None if the engine failed or was too slow.
    """

    def __init__(
        self, recognizer: Recognizer, timeout_s: float, on_done: Callable[[Recognition, Transcript | None], None]
    ) -> None:
        self._recognizer, self._timeout_s, self._on_done = recognizer, timeout_s, on_done
        self._waiting: deque[Recognition] = deque()
        self._running: Recognition | None = None
        self._work = asyncio.Event()

    def pending(self, utterance: Utterance) -> Recognition | None:
        """Return the latest recognition of ``utterance`` that has not answered yet."""
        for job in reversed(self._waiting):
            if job.utterance is utterance:
                return job
        running = self._running
        return running if running is not None and running.utterance is utterance else None

    def request(self, utterance: Utterance, priority: Priority) -> None:
        """Transcribe what ``utterance`` holds now; earlier requests for it are dropped.

        A partial that is being made is let finish: an engine cannot stop in the middle, and its words may decide.
        """
        running = self._running
        if running is not None and running.utterance is utterance and running.priority is Priority.PARTIAL_TRANSCRIPT:
            self._forget_waiting(utterance)
        else:
            self.drop(utterance)
        self._waiting.append(Recognition(utterance, utterance.revision, priority))
        self._work.set()

    def hurry(self, utterance: Utterance) -> None:
        """The caller waits for this transcript now: while it still queues, it overtakes what is only guessed at."""
        job = self.pending(utterance)
        if job is not None:
            job.urgency.rise(Priority.FINAL_TRANSCRIPT)

    def drop(self, utterance: Utterance) -> None:
        """Nobody wants to know any more what ``utterance`` said."""
        self._forget_waiting(utterance)
        if self._running is not None and self._running.utterance is utterance:
            self._running.token.cancel(CancelReason.SUPERSEDED)

    def _forget_waiting(self, utterance: Utterance) -> None:
        for job in [job for job in self._waiting if job.utterance is utterance]:
            self._waiting.remove(job)

    async def run(self) -> None:
        """Serve requests until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._work.clear()
                await self._work.wait()
            job = self._running = self._waiting.popleft()
            deadline = loop.call_later(self._timeout_s, job.token.cancel, CancelReason.TIMEOUT)
            try:
                transcript = await self._transcribe(job)
            finally:
                deadline.cancel()
                self._running = None
            if job.token.reason is not CancelReason.SUPERSEDED:
                self._on_done(job, transcript)

    async def _transcribe(self, job: Recognition) -> Transcript | None:
        pcm = np.frombuffer(bytes(job.utterance.pcm), np.int16)
        try:
            done = await race(
                self._recognizer.transcribe(pcm, priority=job.urgency),
                job.token,
                name="transcription",
                grace_s=CANCEL_GRACE_S,
            )
        except TurnCancelled as cancelled:
            if cancelled.reason is CancelReason.TIMEOUT:
                ENGINE_FAILURES.labels(engine="stt").inc()
                log.warning("the recogniser took longer than %.1f s", self._timeout_s)
            return None
        except EngineError as error:
            ENGINE_FAILURES.labels(engine="stt").inc()
            log.warning("the recogniser failed: %s", str(error))
            return None
        except Exception:
            ENGINE_FAILURES.labels(engine="stt").inc()
            log.exception("the recogniser failed")
            return None
        # A Protocol promises a transcript; only a look proves it.
        result: object = done.value
        if isinstance(result, Transcript):
            return result
        ENGINE_FAILURES.labels(engine="stt").inc()
        log.error("the recogniser returned %s that is no transcript", type(result).__name__)
        return None
