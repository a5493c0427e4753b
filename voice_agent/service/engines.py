"""The engines of a service: what recognises, speaks, listens for voice, and thinks.

Everything above this module sees Protocols. To run a service on other engines (another machine's,
or scripted ones), give it other `Engines`.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from voice_agent.config import Integrations, RecordingOptions, SpeechOptions
from voice_agent.diagnostics import RemediableError, did_you_mean
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import LanguageModel
from voice_agent.speech.cache import ResponseCache
from voice_agent.speech.pool import SpeechPool, pool_plan
from voice_agent.speech.protocols import Recognizer, VoiceDetector
from voice_agent.speech.vad import DetectorFactory
from voice_agent.speech.voice import CachedVoice

log = logging.getLogger(__name__)

RECOGNITION, VOICE, DETECTION = "speech to text", "text to speech", "voice detection"
END_OF_TURN = "end of turn"
"""Names of what is loaded, as `/readyz` gives them."""


@dataclass(frozen=True)
class Engines:
    """What all calls share.

    Attributes:
        detectors: Makes the voice detector of one call.
        loads: Blocking loaders by the name `/readyz` gives them; run in threads, all at once.
        pool: Started before the loaders and closed after the last call; None where no engine needs it.
    """

    model: LanguageModel
    recognizer: Recognizer
    voice: CachedVoice
    detectors: Callable[[], VoiceDetector]
    loads: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    pool: SpeechPool | None = None


def build_engines(options: Integrations, language: str = "en") -> Engines:
    """Build what ``integrations.yml`` names. Loads nothing heavy yet.

    Args:
        language: The agent's own, which it speaks.

    Raises:
        RemediableError: An unknown engine, a missing package, model or key.
    """
    return _build(options.speech, build_model(options.llm), language)


def _build(options: SpeechOptions, model: LanguageModel, language: str) -> Engines:
    _known("speech.stt.name", options.stt.name, "whisper")
    _known("speech.tts.name", options.tts.name, "piper")
    # Heavy engines are imported by the modules below only when they load.
    from voice_agent.speech.piper import PiperSynthesizer
    from voice_agent.speech.whisper import WhisperRecognizer

    workers, threads = pool_plan(options.pool, usable_cores())
    log.info("speech pool: %d workers, %d threads each", workers, threads)
    pool = SpeechPool(workers, options.pool.max_queue)
    recognizer = WhisperRecognizer(options.stt, pool, threads)
    synthesizer = PiperSynthesizer(options.tts, pool, threads)
    detectors = DetectorFactory(options.vad)
    loads = {VOICE: synthesizer.load, RECOGNITION: recognizer.load, DETECTION: detectors.load}
    heard: Recognizer = recognizer
    if options.end_of_turn.name == "smart-turn":
        from voice_agent.speech.smart_turn import SmartTurn, TurnAwareRecognizer

        smart_turn = SmartTurn(options.end_of_turn, threads)
        loads[END_OF_TURN] = smart_turn.load
        heard = TurnAwareRecognizer(recognizer, smart_turn, pool)
    return Engines(
        model=model,
        recognizer=heard,
        voice=CachedVoice(synthesizer, ResponseCache(options.cache), language=language),
        detectors=detectors,
        loads=loads,
        pool=pool,
    )


def check_recording(options: RecordingOptions) -> None:
    """Make sure that calls can be recorded as asked.

    Raises:
        RemediableError: The encoder is not installed.
    """
    if options.enabled and options.format == "opus" and importlib.util.find_spec("av") is None:
        raise RemediableError(
            "recording.format: opus needs PyAV, which is not installed.",
            'Install the extra: pip install -e ".[opus]" (the extra whisper brings it too), or set format: wav.',
        )


def usable_cores() -> int:
    """Cores this process may run on, which in a container are fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def _known(option: str, name: str, *engines: str) -> None:
    if name not in engines:
        hint = did_you_mean(name, engines) or f"Known engines: {', '.join(engines)}."
        raise RemediableError(f"{option} names {name!r}, an engine that does not exist.", hint)
