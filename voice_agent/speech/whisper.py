"""Speech to text with Whisper (faster-whisper, CTranslate2) in the shared pool."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.config import SttOptions
from voice_agent.speech.hallucination import is_credible
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority, Transcript, Urgency
from voice_agent.speech.utterance_windows import cut_at_pauses
from voice_agent.speech.whisper_decoder import Decoded, WhisperDecoder

log = logging.getLogger(__name__)

MAX_UTTERANCE_S = 600
"""Longer audio is refused: ten minutes are the longest `max_utterance_s` there can be."""


class WhisperRecognizer:
    """Implements `voice_agent.speech.protocols.Recognizer`. One for all calls.

    Args:
        threads: Threads of one encoding; ``pool_plan`` gives it beside the pool's workers.
    """

    def __init__(self, options: SttOptions, pool: SpeechPool, threads: int) -> None:
        self._options = options
        self._pool = pool
        self._threads = threads
        self._decoder: WhisperDecoder | None = None

    def load(self) -> None:
        """Load the model and decode one second of silence, so that the first caller pays for neither.

        Blocks for about a second: call it off the loop, before calls are admitted.

        Raises:
            RemediableError: The package, model or language cannot be had.
        """
        decoder = WhisperDecoder(
            self._options.model, self._options.language, threads=self._threads, workers=self._pool.workers
        )
        decoder.decode(np.zeros(SAMPLE_RATE, dtype=np.int16))
        self._decoder = decoder

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        """Transcribe one utterance of 16 kHz mono samples, shape (n,).

        An utterance longer than 24 s is cut at its pauses, and each piece is a job of its own: a
        caller who speaks for a minute does not hold a worker while another waits for an answer.

        Raises:
            EngineError: The engine failed or is not loaded, the audio is longer than ten minutes,
                or the pool refused the job.
            ValueError: The array is no mono int16 audio.
        """
        if pcm.ndim != 1 or pcm.dtype != np.int16:
            raise ValueError(f"a recogniser takes mono int16 samples, not {pcm.dtype} of shape {pcm.shape}")
        if self._decoder is None:
            raise EngineError("the Whisper model is not loaded")
        seconds = len(pcm) / SAMPLE_RATE
        if seconds > MAX_UTTERANCE_S:
            raise EngineError(f"an utterance of {seconds:.0f} s is longer than {MAX_UTTERANCE_S} s")
        if not len(pcm):
            return Transcript(text="", seconds=0.0, no_speech_probability=1.0, accepted=False)
        heard = [
            await self._pool.run(self._decode, self._decoder, piece, priority=priority, job="transcribe")
            for piece in cut_at_pauses(pcm)
        ]
        return _joined(heard, seconds)

    @staticmethod
    def _decode(decoder: WhisperDecoder, pcm: NDArray[np.int16]) -> Decoded:
        try:
            return decoder.decode(pcm)
        except Exception as error:
            log.exception("Whisper failed on %.1f s of audio", len(pcm) / SAMPLE_RATE)
            raise EngineError(f"Whisper failed on {len(pcm) / SAMPLE_RATE:.1f} s of audio: {error}") from error


def _joined(heard: Sequence[Decoded], seconds: float) -> Transcript:
    """Join the pieces of one utterance; the credible ones if there are any."""
    credible = [
        piece
        for piece in heard
        if is_credible(
            piece.text,
            piece.seconds,
            no_speech_probability=piece.no_speech_probability,
            average_log_probability=piece.average_log_probability,
        )
    ]
    kept = credible or heard
    weights = [max(1, piece.tokens) for piece in kept]
    return Transcript(
        text=" ".join(piece.text for piece in kept if piece.text),
        seconds=seconds,
        no_speech_probability=min(piece.no_speech_probability for piece in kept),
        average_log_probability=float(np.average([p.average_log_probability for p in kept], weights=weights)),
        accepted=bool(credible),
        stop_probability=kept[-1].stop_probability,
    )
