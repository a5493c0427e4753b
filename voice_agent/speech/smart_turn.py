"""Does the caller mean to go on? The smart-turn model's opinion, from the sound alone, beside each transcript.

smart-turn v3.2 (BSD-2-Clause, weights in the wheel of ``pipecat-ai``) looks at the last 8 s as Whisper's log-mel
spectrogram, (1, 80, 800), and gives the probability that the turn is over. One decision costs 0.13 to 0.16 CPU-s, so it
is asked only while the pool has a worker to spare.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.config import EndOfTurnOptions
from voice_agent.diagnostics import RemediableError, missing_package
from voice_agent.speech.models import smart_turn_weights
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority, Recognizer, Transcript, Urgency
from voice_agent.telemetry.metrics import ENGINE_FAILURES

log = logging.getLogger(__name__)

WINDOW_S = 8
_WINDOW = WINDOW_S * SAMPLE_RATE


class SmartTurn:
    """The model. One for all calls; `probability` may be called from any thread once loaded."""

    def __init__(self, options: EndOfTurnOptions, threads: int) -> None:
        self._options, self._threads = options, threads
        self._session: Any = None
        self._features: Any = None

    def load(self) -> None:
        """Load the model and judge a second of silence. Blocks.

        Raises:
            RemediableError: The package or the weights cannot be had.
        """
        try:
            import onnxruntime
            from faster_whisper.feature_extractor import FeatureExtractor
        except ImportError as fault:
            raise missing_package(fault.name or "onnxruntime", "smart-turn") from None
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = self._threads, 1
        # Its arena keeps the largest of everything ever asked for.
        settings.enable_cpu_mem_arena = False
        weights = smart_turn_weights(self._options.path)
        try:
            self._session = onnxruntime.InferenceSession(str(weights), settings, providers=["CPUExecutionProvider"])
        except Exception as fault:  # noqa: BLE001 - what ONNX Runtime raises has no class of its own
            remedy = "Name the path of a smart-turn v3 .onnx file in speech.end_of_turn.path, or leave it out."
            raise RemediableError(f"{weights} is no model that can be run: {fault}.", remedy) from None
        self._features = FeatureExtractor(feature_size=80)
        self.probability(np.zeros(SAMPLE_RATE, np.int16))

    def probability(self, pcm: NDArray[np.int16]) -> float:
        """Return how surely the turn is over, 0 … 1. Blocks.

        Args:
            pcm: Samples at 16 kHz, mono, shape (n,); the last 8 s count.
        """
        heard = pcm[-_WINDOW:].astype(np.float32) / 32768
        # As it was trained: silence before a short turn, then zero mean and unit variance over the window.
        window = np.zeros(_WINDOW, np.float32)
        if len(heard):
            window[-len(heard) :] = heard
        window = (window - window.mean()) / np.sqrt(window.var() + 1e-7)
        mel = self._features(window, padding=0)[None, :, :800].astype(np.float32)
        return float(self._session.run(None, {"input_features": mel})[0].ravel()[0])


class TurnAwareRecognizer:
    """Implements `Recognizer`: another's transcripts, with the model's opinion where there is room for it.

    The lower of the two opinions counts: a full stop that either doubts is waited for.
    """

    def __init__(self, recognizer: Recognizer, model: SmartTurn, pool: SpeechPool) -> None:
        self._recognizer, self._model, self._pool = recognizer, model, pool

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        """Transcribe, and judge. Raises as the recogniser does; a model that fails has no opinion."""
        asked = priority.priority if isinstance(priority, Urgency) else priority
        spare = self._pool.workers - self._pool.busy - self._pool.depth
        if asked is Priority.PARTIAL_TRANSCRIPT or spare < 2:
            return await self._recognizer.transcribe(pcm, priority=priority)
        judging = asyncio.create_task(self._judge(pcm), name="end-of-turn")
        try:
            transcript = await self._recognizer.transcribe(pcm, priority=priority)
            opinion = await judging
        finally:
            judging.cancel()
            await asyncio.wait({judging})
        if opinion is None:
            return transcript
        own = transcript.stop_probability
        return replace(transcript, stop_probability=opinion if own is None else min(own, opinion))

    async def _judge(self, pcm: NDArray[np.int16]) -> float | None:
        try:
            return await self._pool.run(
                self._model.probability, pcm, priority=Priority.FINAL_TRANSCRIPT, job="end of turn"
            )
        except EngineError:
            return None
        except Exception:
            ENGINE_FAILURES.labels(engine="end_of_turn").inc()
            log.exception("the model of the end of a turn failed")
            return None
