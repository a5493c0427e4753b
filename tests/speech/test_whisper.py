"""The recogniser on real models and human speech."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.clips import Clip, pocketsphinx_clips, studio_prompts
from tests.support.word_errors import normalized, word_errors
from voice_agent.config import SttOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, PoolOverloaded, Priority
from voice_agent.speech.whisper import WhisperRecognizer
from voice_agent.speech.whisper_decoder import WhisperDecoder

pytestmark = pytest.mark.models

STOCK_SAMPLE = 4
"""Every fourth prompt also goes through stock faster-whisper, which takes thrice as long."""


@pytest.fixture(scope="module")
def fast() -> WhisperDecoder:
    return WhisperDecoder("tiny.en", "en", threads=2, workers=1)


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    return studio_prompts(60) + pocketsphinx_clips()


@pytest.fixture(scope="module")
def pool() -> Iterator[SpeechPool]:
    pool = SpeechPool(1)
    pool.start()
    yield pool
    asyncio.run(pool.aclose(10))


@pytest.fixture(scope="module")
def recognizer(pool: SpeechPool) -> WhisperRecognizer:
    recognizer = WhisperRecognizer(SttOptions(), pool, threads=2)
    recognizer.load()
    return recognizer


@pytest.fixture
async def overloaded() -> AsyncIterator[SpeechPool]:
    """A pool that was never started and whose queue is full."""
    pool = SpeechPool(1, max_queue=1)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(pool.run(int, priority=Priority.FIRST_AUDIO, job="waits"))
        await asyncio.sleep(0)
        yield pool
        waiting.cancel()


def error_rate(clips: list[Clip], heard: list[str]) -> float:
    errors = sum(word_errors(normalized(clip.text), normalized(text)) for clip, text in zip(clips, heard, strict=True))
    return errors / sum(len(normalized(clip.text)) for clip in clips)


@pytest.mark.timeout(300)
def test_the_fast_profile_hears_within_half_a_point_of_stock(fast: WhisperDecoder, clips: list[Clip]) -> None:
    from faster_whisper import WhisperModel

    from voice_agent.speech.models import whisper_model

    assert len(clips) == 70
    heard = {clip.name: fast.decode(clip.pcm).text for clip in clips}
    # A bound on all clips, measured at 4.5 %; the comparison on a sample that fits into a test run.
    assert error_rate(clips, list(heard.values())) < 0.06
    stock = WhisperModel(whisper_model("tiny.en"), device="cpu", compute_type="int8", cpu_threads=2)
    sample = clips[::STOCK_SAMPLE]
    by_stock = []
    for clip in sample:
        segments, _ = stock.transcribe(clip.pcm.astype(np.float32) / 32768, language="en", beam_size=1)
        by_stock.append(" ".join(segment.text for segment in segments))
    assert error_rate(sample, [heard[clip.name] for clip in sample]) <= error_rate(sample, by_stock) + 0.005


def test_the_accurate_profile_hears_and_detects_the_language(clips: list[Clip]) -> None:
    base = WhisperDecoder("base", None, threads=2, workers=1)
    sample = clips[:8] + clips[-5:]
    assert error_rate(sample, [base.decode(clip.pcm).text for clip in sample]) < 0.08


def test_an_answer_that_loops_is_decoded_again(fast: WhisperDecoder, monkeypatch: pytest.MonkeyPatch) -> None:
    # A window this short makes the model repeat itself; what comes out must not.
    monkeypatch.setattr(fast, "_padding_s", 3.0)
    clips = studio_prompts(24)
    raw_loops = []
    generate = WhisperDecoder._generate

    def watched(self: WhisperDecoder, encoded: object, prompt: list[int], seconds: float) -> object:
        decoded = generate(self, encoded, prompt, seconds)
        raw_loops.append(decoded.is_runaway)
        return decoded

    monkeypatch.setattr(WhisperDecoder, "_generate", watched)
    heard = [fast.decode(clip.pcm) for clip in clips]
    assert sum(raw_loops) >= 2, "the short window provoked no loop, so the test shows nothing"
    assert not any(decoded.is_runaway for decoded in heard)
    assert error_rate(clips, [decoded.text for decoded in heard]) < 0.1


async def test_a_caller_who_speaks_for_a_minute_is_heard_whole(
    recognizer: WhisperRecognizer, clips: list[Clip]
) -> None:
    pause = np.zeros(8000, dtype=np.int16)
    said: list[Clip] = []
    pieces: list[NDArray[np.int16]] = []
    for clip in clips:
        if sum(map(len, pieces)) > 60 * 16000:
            break
        said.append(clip)
        pieces += [clip.pcm, pause]
    minute = np.concatenate(pieces)
    transcript = await recognizer.transcribe(minute)
    assert transcript.accepted
    assert transcript.seconds == pytest.approx(len(minute) / 16000)
    reference = [word for clip in said for word in normalized(clip.text)]
    assert word_errors(reference, normalized(transcript.text)) <= 0.1 * len(reference)


async def test_nothing_at_all_is_no_utterance(recognizer: WhisperRecognizer) -> None:
    transcript = await recognizer.transcribe(np.zeros(0, dtype=np.int16))
    assert transcript.text == ""
    assert not transcript.accepted


@pytest.mark.parametrize("samples", [1, 7, 160, 401])
async def test_audio_of_a_few_samples_is_no_error(recognizer: WhisperRecognizer, samples: int) -> None:
    transcript = await recognizer.transcribe(np.full(samples, 100, dtype=np.int16))
    assert not transcript.accepted


async def test_what_is_no_mono_pcm_is_a_programming_error(recognizer: WhisperRecognizer) -> None:
    with pytest.raises(ValueError, match="float32"):
        await recognizer.transcribe(np.zeros(160, dtype=np.float32))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\(160, 2\)"):
        await recognizer.transcribe(np.zeros((160, 2), dtype=np.int16))


async def test_audio_beyond_ten_minutes_is_refused(recognizer: WhisperRecognizer) -> None:
    with pytest.raises(EngineError, match="601 s is longer than 600 s"):
        await recognizer.transcribe(np.zeros(601 * 16000, dtype=np.int16))


async def test_a_fault_of_the_engine_is_an_engine_error(
    recognizer: WhisperRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: WhisperDecoder, pcm: NDArray[np.int16]) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(WhisperDecoder, "decode", broken)
    with pytest.raises(EngineError, match=r"Whisper failed on 1\.0 s of audio: out of memory"):
        await recognizer.transcribe(np.zeros(16000, dtype=np.int16))


async def test_an_overloaded_pool_is_reported_as_such(recognizer: WhisperRecognizer, overloaded: SpeechPool) -> None:
    starved = WhisperRecognizer(SttOptions(), overloaded, threads=1)
    starved._decoder = recognizer._decoder
    with pytest.raises(PoolOverloaded):
        await starved.transcribe(np.zeros(16000, dtype=np.int16))


async def test_a_model_that_is_not_loaded_is_an_engine_error(pool: SpeechPool) -> None:
    with pytest.raises(EngineError, match="not loaded"):
        await WhisperRecognizer(SttOptions(), pool, threads=1).transcribe(np.zeros(160, dtype=np.int16))


@pytest.mark.parametrize(
    ("model", "language", "message"),
    [
        ("tiny.en", "de", "hears English only"),
        ("base", "enn", "knows no language 'enn'"),
    ],
)
def test_a_language_the_model_does_not_know_is_refused_at_load(model: str, language: str, message: str) -> None:
    with pytest.raises(RemediableError, match=message):
        WhisperDecoder(model, language, threads=1, workers=1)


def test_a_directory_that_holds_no_model_is_refused_at_load(tmp_path: object) -> None:
    from pathlib import Path

    directory = Path(str(tmp_path))
    (directory / "model.bin").write_bytes(b"not a model")
    with pytest.raises(RemediableError, match="cannot be loaded"):
        WhisperDecoder(str(directory), "en", threads=1, workers=1)
