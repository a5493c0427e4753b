"""A speech pool without threads: real engines in virtual time, where a job takes as long as it is said to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

import onnxruntime

from voice_agent.config import CacheOptions, SttOptions, TtsOptions
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.silero import SileroModel
from voice_agent.speech.vad import TwoStageDetector
from voice_agent.speech.voice import CachedVoice
from voice_agent.speech.whisper import WhisperRecognizer


class InlinePool:
    """Runs each job at once, on the loop; its awaiter gets the result ``seconds`` of the loop's time later."""

    workers = 1

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def run(self, fn: Callable[..., Any], *args: Any, priority: object, job: str) -> Any:
        result = fn(*args)
        await asyncio.sleep(self._seconds)
        return result


@cache
def _silero() -> SileroModel:
    return SileroModel.load()


@cache
def recognizer(seconds: float = 0.2) -> WhisperRecognizer:
    """Return the real recogniser, loaded."""
    engine = WhisperRecognizer(SttOptions(), InlinePool(seconds), threads=2)  # type: ignore[arg-type]
    engine.load()
    return engine


@cache
def _synthesizer(seconds: float = 0.1) -> PiperSynthesizer:
    # Every rendering of a line differs; a test needs the same one each time.
    onnxruntime.set_seed(7)
    engine = PiperSynthesizer(TtsOptions(), InlinePool(seconds), threads=2)  # type: ignore[arg-type]
    engine.load()
    return engine


def renew_voice() -> None:
    """Let the voice begin from its seed again, so that a module's lines sound alike whatever ran before it."""
    _synthesizer.cache_clear()


def voice() -> CachedVoice:
    """Return the real voice, loaded, with a cache of its own."""
    return CachedVoice(_synthesizer(), ResponseCache(CacheOptions(disk_mb=0)))


def detector() -> TwoStageDetector:
    """Return a real voice detector."""
    return TwoStageDetector(_silero())
