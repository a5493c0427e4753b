"""Speech engines, their workers, canned speech."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from voice_agent.config.options import Options


class SttOptions(Options):
    """Speech to text."""

    name: str = "whisper"
    """The engine: ``whisper``."""
    model: str = "tiny.en"
    """``tiny.en`` (fast, bundled), ``base`` (accurate, bundled), a hub name, or a path."""
    language: str | None = "en"
    """Language of the callers; null lets the model decide."""


class TtsOptions(Options):
    """Text to speech."""

    name: str = "piper"
    """The engine: ``piper``."""
    voice: str = "en_US-joe-medium"
    """A bundled voice or the path of a Piper ``.onnx`` file."""


class VadOptions(Options):
    """Voice detection."""

    name: Literal["silero", "webrtc"] = "silero"
    """``silero`` confirms what WebRTC finds; ``webrtc`` alone is cheaper and fooled by music and hum."""


class EndOfTurnOptions(Options):
    """What beside the words may tell that the caller goes on."""

    name: Literal["words", "smart-turn"] = "words"
    """``words`` alone, or the audio model ``smart-turn`` beside them, whenever a worker is to spare."""
    path: Path | None = None
    """A smart-turn v3 ``.onnx`` file, instead of the one that the extra ``smart-turn`` brings."""


class PoolOptions(Options):
    """The worker pool that all calls share."""

    workers: int = Field(0, ge=0, le=64)
    """Jobs run at once; 0 chooses from the number of cores."""
    threads_per_job: int = Field(0, ge=0, le=64)
    """Threads of one engine job; 0 chooses so that workers x threads does not exceed the cores."""
    max_queue: int = Field(64, ge=1, le=10_000)
    """Jobs waiting beyond this are refused."""


class CacheOptions(Options):
    """Speech that was made once and is said again."""

    memory_mb: int = Field(64, ge=1, le=4096)
    """Speech kept in memory, in MiB: about 30 s each."""
    disk_mb: int = Field(256, ge=0, le=65_536)
    """Speech kept on disk across restarts, in MiB; 0 keeps none."""
    directory: Path | None = None
    """Where on disk; ``voice-agent/responses`` in the user's cache directory by default."""


class SpeechOptions(Options):
    """The speech engines and what they share."""

    stt: SttOptions = SttOptions()
    """Speech to text."""
    tts: TtsOptions = TtsOptions()
    """Text to speech."""
    vad: VadOptions = VadOptions()
    """Voice detection."""
    end_of_turn: EndOfTurnOptions = EndOfTurnOptions()
    """What tells that the caller has finished."""
    pool: PoolOptions = PoolOptions()
    """The workers that run them."""
    cache: CacheOptions = CacheOptions()
    """Canned speech, kept."""
