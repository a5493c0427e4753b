"""Backchannels and interruptions as the real recogniser hears their beginnings, spoken by the real voice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from tests.support.sounds import frames
from voice_agent.call.barge_in import BargeIn, Decision
from voice_agent.call.ears import PARTIAL_EVERY_MS, PARTIAL_FIRST_MS
from voice_agent.call.hum import words_or_hum
from voice_agent.config import SttOptions, TtsOptions, TurnTaking
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.vad import WebRtcDetector
from voice_agent.speech.whisper import WhisperRecognizer

pytestmark = pytest.mark.models

PRE_ROLL = 4800
"""300 ms."""


@pytest.fixture
async def engines() -> AsyncIterator[tuple[PiperSynthesizer, WhisperRecognizer]]:
    # Every rendering of a line differs; a test needs the same one each time.
    onnxruntime.set_seed(7)
    pool = SpeechPool(workers=1)
    pool.start()
    voice = PiperSynthesizer(TtsOptions(), pool, threads=1)
    recognizer = WhisperRecognizer(SttOptions(), pool, threads=1)
    await asyncio.to_thread(voice.load)
    await asyncio.to_thread(recognizer.load)
    yield voice, recognizer
    await pool.aclose(10)


async def _decisions(recognizer: WhisperRecognizer, pcm: NDArray[np.int16], most_ms: int) -> list[Decision]:
    """Decide on the beginnings of ``pcm``, as long as partials are, up to ``most_ms`` of voice."""
    room = np.random.default_rng(1).normal(0, 12, 16000).astype(np.int16)
    pcm = np.concatenate([room, pcm, room])
    detector = WebRtcDetector()
    voiced = [detector.push(frame).voiced for frame in frames(pcm)]
    onset, voice_ms = voiced.index(True) * 320, sum(voiced) * 20
    barge_in, decisions, words = BargeIn(TurnTaking()), [], ""
    for heard_ms in range(PARTIAL_FIRST_MS, min(voice_ms, most_ms) + 1, PARTIAL_EVERY_MS):
        part = pcm[onset - PRE_ROLL : onset + heard_ms * 16]
        heard = await recognizer.transcribe(part)
        words = words_or_hum(heard, part, so_far=words)
        decisions.append(barge_in.on_words(words, heard_ms, certainty=heard.average_log_probability))
    return decisions


async def test_backchannels_go_on_and_stop_words_stop(engines: tuple[PiperSynthesizer, WhisperRecognizer]) -> None:
    voice, recognizer = engines
    for text in ("Mm-hm.", "Yeah.", "Okay.", "Right."):
        speech = await voice.synthesize(text)
        decisions = await _decisions(recognizer, np.frombuffer(speech.pcm, np.int16), 600)
        assert Decision.CONFIRM not in decisions, text
        assert decisions[0] is Decision.RESUME, text
    for text in ("Wait, stop.", "No, that is wrong."):
        speech = await voice.synthesize(text)
        decisions = await _decisions(recognizer, np.frombuffer(speech.pcm, np.int16), 340)
        assert Decision.CONFIRM in decisions, text
        assert Decision.RESUME not in decisions, text
