"""On silence Whisper invents "Thank you" or "Thanks for watching", and the agent answers.

Right: duration, no-speech probability and log-probability decide together, not a list of phrases;
silence, noise, breath and hold music are no utterance, a real "thank you" is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import numpy as np
import onnxruntime
import pytest
import soxr
from numpy.typing import NDArray

from tests.support.clips import read_clip
from tests.support.debian import HOLD_MUSIC, package_file, prompt_files
from voice_agent.config import SttOptions
from voice_agent.speech.models import piper_voice
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.repetition import words_of
from voice_agent.speech.whisper import WhisperRecognizer

pytestmark = pytest.mark.models
RATE = 16000


def pcm_at(signal: NDArray[np.float64], level_dbfs: float) -> NDArray[np.int16]:
    scaled = signal / max(float(np.sqrt(np.mean(signal**2))), 1e-9) * 10 ** (level_dbfs / 20) * 32768
    return np.clip(np.round(scaled), -32768, 32767).astype(np.int16)


def shaped_noise(seconds: float, gain: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
    samples = int(seconds * RATE)
    spectrum = np.fft.rfft(np.random.default_rng(11).normal(size=samples))
    return np.fft.irfft(spectrum * gain(np.fft.rfftfreq(samples, 1 / RATE)), samples)


def white(seconds: float) -> NDArray[np.float64]:
    return shaped_noise(seconds, np.ones_like)


def pink(seconds: float) -> NDArray[np.float64]:
    return shaped_noise(seconds, lambda frequency: 1 / np.sqrt(np.maximum(frequency, 20)))


def breath(seconds: float) -> NDArray[np.float64]:
    """Noise around 800 Hz that swells and ebbs."""
    swell = np.sin(np.pi * np.linspace(0, 1, int(seconds * RATE))) ** 2
    return shaped_noise(seconds, lambda frequency: np.exp(-(((frequency - 800) / 700) ** 2))) * swell


def no_speech() -> list[tuple[str, NDArray[np.int16]]]:
    cases = [(f"silence {seconds} s", np.zeros(int(seconds * RATE), np.int16)) for seconds in (0.4, 1.5, 6)]
    for seconds in (0.6, 1.5, 4):
        for make in (white, pink, breath):
            for level in (-60, -40, -25):
                cases.append((f"{make.__name__} {seconds} s {level} dBFS", pcm_at(make(seconds), level)))
    music = read_clip(package_file(HOLD_MUSIC, "**/*.wav")[0])
    cases += [(f"hold music from {at} s", music[at * RATE : at * RATE + 2 * RATE]) for at in (5, 20, 40)]
    return cases


def few_words() -> list[tuple[str, NDArray[np.int16]]]:
    """What callers say in a word or two, which is what the guards are most likely to drop."""
    spoken = prompt_files()
    names = ("auth-thankyou", "goodbye", "hello", "im-sorry", "cancelled", "location", "number", "time", "digits/7")
    return [(name, read_clip(spoken[name])) for name in names]


def thank_you(level_dbfs: float) -> NDArray[np.int16]:
    """The words "Thank you." as a phone line carries them: 8 kHz, with 300 ms of pre-roll."""
    from piper import PiperVoice

    # Every rendering of a line differs; a test needs the same one each time.
    onnxruntime.set_seed(11)
    weights, config = piper_voice("en_US-joe-medium")
    voice = PiperVoice.load(weights, config)
    spoken = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize("Thank you.")])
    narrow = soxr.resample(soxr.resample(spoken, voice.config.sample_rate, 8000), 8000, RATE)
    return np.concatenate([np.zeros(int(0.3 * RATE), np.int16), pcm_at(narrow.astype(np.float64), level_dbfs)])


@asynccontextmanager
async def loaded(model: str) -> AsyncIterator[WhisperRecognizer]:
    pool = SpeechPool(1)
    recognizer = WhisperRecognizer(SttOptions(model=model), pool, threads=2)
    await asyncio.to_thread(recognizer.load)
    pool.start()
    try:
        yield recognizer
    finally:
        await pool.aclose(10)


@pytest.mark.parametrize(("model", "every"), [("tiny.en", 1), ("base", 2)])
async def test_silence_noise_breath_and_music_are_no_utterance(model: str, every: int) -> None:
    invented = []
    async with loaded(model) as recognizer:
        for name, pcm in no_speech()[::every]:
            transcript = await recognizer.transcribe(pcm)
            if transcript.accepted:
                invented.append((name, transcript))
    assert not invented


@pytest.mark.parametrize("model", ["tiny.en", "base"])
async def test_a_real_thank_you_and_other_short_answers_are_utterances(model: str) -> None:
    dropped = []
    async with loaded(model) as recognizer:
        for level in (-20, -40):
            transcript = await recognizer.transcribe(thank_you(level))
            assert transcript.accepted
            assert words_of(transcript.text) == ["thank", "you"]
        for name, pcm in few_words():
            transcript = await recognizer.transcribe(pcm)
            if not transcript.accepted:
                dropped.append((name, transcript))
    assert not dropped
