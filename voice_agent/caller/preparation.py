"""Lines made ready before the call, so that nothing but the clock decides when they are spoken."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from voice_agent.audio.resample import resample
from voice_agent.audio.wav import read_wav
from voice_agent.caller.audio import voice_bounds
from voice_agent.caller.lines import Line, SpokenLine
from voice_agent.diagnostics import RemediableError
from voice_agent.speech.speakable import speakable

DEFAULT_VOICE = "en_US-joe-medium"
SENTENCE_PAUSE_S = 0.15
"""Between the sentences of one line: a speaker who goes straight on, so that the pause ends no turn."""

MAX_LINE_S = 600.0


class CallerVoice(Protocol):
    """Speaks a caller's line."""

    def speak(self, text: str) -> tuple[NDArray[np.int16], int]:
        """Return mono samples and their rate in Hz."""
        ...


class PiperCaller:
    """A Piper voice, loaded when the first text line needs it."""

    def __init__(self, name: str = DEFAULT_VOICE) -> None:
        self._name = name
        self._voice: Any = None

    def speak(self, text: str) -> tuple[NDArray[np.int16], int]:
        """Speak ``text`` as people say it (numbers, dates, money), each sentence trimmed to its voice.

        Raises:
            RemediableError: Piper or the voice is missing, or there is nothing to pronounce.
        """
        if self._voice is None:
            self._voice = _load(self._name)
        rate = int(self._voice.config.sample_rate)
        pause = np.zeros(round(rate * SENTENCE_PAUSE_S), np.int16)
        pieces: list[NDArray[np.int16]] = []
        for chunk in self._voice.synthesize(speakable(text, self._voice.config.espeak_voice).text):
            samples = np.asarray(chunk.audio_int16_array, np.int16)
            first, last = voice_bounds(samples, rate)
            pieces += [pause, samples[first:last]] if pieces else [samples[first:last]]
        if not pieces:
            raise RemediableError(f"--say {text!r} holds nothing that can be spoken.", "Give words.")
        return np.concatenate(pieces), rate


def prepare(
    lines: Sequence[Line], rate: int, voice: str | None, console: Console, speaker: CallerVoice | None = None
) -> list[SpokenLine]:
    """Turn lines into sound at the wire's rate, showing progress.

    Raises:
        RemediableError: A WAV file cannot be read, is too long or silent, or a text cannot be spoken.
    """
    speaker = speaker or PiperCaller(voice or DEFAULT_VOICE)
    spoken = []
    with console.status("Preparing the caller's lines …") as status:
        for number, line in enumerate(lines, 1):
            status.update(Text(f"Preparing line {number} of {len(lines)}: {line.label}"))
            spoken.append(_prepare(line, rate, speaker))
    if spoken:
        seconds = sum(line.seconds for line in spoken)
        counted = "1 line" if len(spoken) == 1 else f"{len(spoken)} lines"
        console.print(f"Prepared {counted}, {seconds:.1f} s of speech.", style="dim", highlight=False)
    return spoken


def _prepare(line: Line, rate: int, speaker: CallerVoice) -> SpokenLine:
    if line.wav is not None:
        content, from_rate = read_wav(line.wav)
        samples = np.frombuffer(content, np.int16)
        _check(line.wav, samples, from_rate)
    else:
        samples, from_rate = speaker.speak(line.text or "")
    pcm = np.frombuffer(resample(samples.tobytes(), from_rate, rate), np.int16)
    first, last = voice_bounds(pcm, rate)
    return SpokenLine(line, pcm, first / rate, last / rate, len(pcm) / rate)


def _check(path: Path, samples: NDArray[np.int16], rate: int) -> None:
    if len(samples) == 0 or not samples.any():
        raise RemediableError(f"{path} holds no sound.", "Name a WAV file with speech in it.")
    if len(samples) > MAX_LINE_S * rate:
        raise RemediableError(
            f"{path} is {len(samples) / rate:.0f} s long.", f"A line may last {MAX_LINE_S:g} s; cut the file."
        )


def _load(name: str) -> Any:
    try:
        from piper import PiperVoice

        from voice_agent.speech.models import piper_voice
    except ImportError as error:
        raise RemediableError(
            "--say needs Piper to speak the caller's lines.",
            'Install it with pip install "voice-agent[piper]", or give the lines as --wav files.',
        ) from error
    weights, config = piper_voice(name)
    # Piper warns of each phoneme its voice lacks; that is of no use to someone placing a call.
    logging.getLogger("piper").setLevel(logging.ERROR)
    try:
        return PiperVoice.load(weights, config)
    except Exception as error:  # whatever a foreign file makes the engine raise
        message = f"The voice {weights} cannot be loaded ({error})."
        raise RemediableError(message, "Name another with --voice.") from error
