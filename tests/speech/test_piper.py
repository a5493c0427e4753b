"""Real Piper: words lie where they sound, silence is bounded, and faults come as engine errors."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from voice_agent.audio.level import dbfs
from voice_agent.config import TtsOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.piper_model import aligned_model
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Speech, Synthesizer
from voice_agent.speech.silence import LEAD_S
from voice_agent.speech.speakable import speakable

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

SENTENCES = [
    "Hello!",
    "Your balance is **$42.50** 😀 and it is due on March 3, 2024.",
    "I have a dog and it is for you to be in the house. Hello there, Mr. Smith: how are you?",
    "Of the people, by the people, for the people — and so on.",
    "Call (555) 123-4567 or write to jo@example.com, 24/7.",
    "seven",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def piper() -> AsyncIterator[PiperSynthesizer]:
    pool = SpeechPool(workers=1)
    pool.start()
    synthesizer = PiperSynthesizer(TtsOptions(), pool, threads=1)
    await asyncio.to_thread(synthesizer.load)
    yield synthesizer
    await pool.aclose(timeout_s=2)


def level(speech: Speech, first: int, last: int) -> float:
    return dbfs(speech.pcm[2 * first : 2 * last])


@pytest.mark.parametrize("text", SENTENCES)
async def test_each_word_has_a_span_in_order_inside_the_audio(piper: PiperSynthesizer, text: str) -> None:
    speech = await piper.synthesize(text)
    assert speech.text == text
    assert [text[span.start : span.end] for span in speech.spans] == text.split()
    edges = [edge for span in speech.spans for edge in (span.first, span.last)]
    assert edges == sorted(edges)
    assert edges[0] >= 0
    assert edges[-1] <= len(speech.pcm) // 2


@pytest.mark.parametrize("text", SENTENCES)
async def test_words_sound_where_their_spans_say_and_only_they_do(piper: PiperSynthesizer, text: str) -> None:
    speech = await piper.synthesize(text)
    said = [span for span in speech.spans if re.search(r"\w", text[span.start : span.end])]
    for span in said:
        # Little words such as "to" are breathed rather than spoken; silence is at -90 dBFS.
        assert level(speech, span.first, span.last) > (-35 if span.end - span.start >= 4 else -50)
    # After the last word there is nothing but its echo.
    assert level(speech, said[-1].last + 1600, len(speech.pcm) // 2) < -45


async def test_a_pause_between_sentences_lies_between_the_spans_of_their_words(piper: PiperSynthesizer) -> None:
    speech = await piper.synthesize("That is done. Now the next.")
    done, now = speech.spans[2], speech.spans[3]
    assert 0.12 <= (now.first - done.last) / 16000 <= 0.4
    middle = (now.first + done.last) // 2
    assert level(speech, middle - 400, middle + 400) < -45


async def test_exact_spans_are_used_and_differ_from_estimated_ones(piper: PiperSynthesizer) -> None:
    assert piper.has_alignment
    # An estimate by characters knows nothing of pauses: its words touch but for a space.
    speech = await piper.synthesize("One, two, three.")
    for before, after in itertools.pairwise(speech.spans):
        assert after.first - before.last > 0.05 * 16000


async def test_leading_silence_is_short_and_the_pause_after_a_sentence_natural(piper: PiperSynthesizer) -> None:
    for text in ("Hello.", "seven.", "All of it."):
        speech = await piper.synthesize(text)
        samples = np.abs(np.frombuffer(speech.pcm, "<i2").astype(np.int32))
        loud = np.flatnonzero(samples > 0.01 * 32768)
        assert loud[0] / 16000 <= LEAD_S + 0.04
        assert 0.1 <= (len(samples) - loud[-1]) / 16000 <= 0.35


async def test_the_peak_leaves_room_for_telephone_codecs(piper: PiperSynthesizer) -> None:
    speech = await piper.synthesize("What a wonderful day!")
    peak = np.abs(np.frombuffer(speech.pcm, "<i2").astype(np.int32)).max()
    assert 0.5 * 32768 < peak < 0.8 * 32768


@pytest.mark.parametrize("text", ["👍", "```py\nx = 1\n```", "| a | b |", "***", " "])
async def test_text_with_nothing_to_say_has_no_audio(piper: PiperSynthesizer, text: str) -> None:
    speech = await piper.synthesize(text)
    assert speech.pcm == b""
    assert [(span.first, span.last) for span in speech.spans] == [(0, 0)] * len(text.split())


async def test_raw_phonemes_cannot_be_smuggled_in(piper: PiperSynthesizer) -> None:
    # Piper reads what stands in double brackets as phonemes.
    assert "[" not in speakable("Say [[bˈoʊ]] now").text
    speech = await piper.synthesize("Say [[ bˈoʊ ]] now")
    assert len(speech.spans) == 5


async def test_the_identity_names_voice_weights_and_rate(piper: PiperSynthesizer) -> None:
    synthesizer: Synthesizer = piper
    assert "en_US-joe-medium" in synthesizer.identity
    assert "58afce0321b8d9c4" in synthesizer.identity
    assert piper.language == "en"


async def test_a_fault_of_the_engine_is_an_engine_error_without_the_text(
    piper: PiperSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ValueError("bad tensor")

    monkeypatch.setattr(piper._voice, "phoneme_ids_to_audio", broken)
    with pytest.raises(EngineError, match="bad tensor") as caught:
        await piper.synthesize("My secret is here.")
    assert "secret" not in str(caught.value)


async def test_speaking_before_loading_is_an_engine_error() -> None:
    pool = SpeechPool(workers=1)
    pool.start()
    unloaded = PiperSynthesizer(TtsOptions(), pool, threads=1)
    with pytest.raises(EngineError, match=r"load\(\)"):
        await unloaded.synthesize("Hello.")
    with pytest.raises(RuntimeError, match=r"load\(\)"):
        _ = unloaded.identity
    await pool.aclose(timeout_s=1)


async def test_without_onnx_words_are_placed_by_characters_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    pool = SpeechPool(workers=1)
    pool.start()
    estimated = PiperSynthesizer(TtsOptions(), pool, threads=1)
    await asyncio.to_thread(estimated.load)
    assert not estimated.has_alignment
    speech = await estimated.synthesize("Hello there, my friend.")
    assert [span.start for span in speech.spans] == [0, 6, 13, 16]
    assert 0 < speech.spans[-1].last <= len(speech.pcm) // 2
    assert len([record for record in caplog.records if "by their characters" in record.message]) == 1
    await pool.aclose(timeout_s=1)


async def test_the_prepared_voice_is_made_once_and_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from voice_agent.speech.models import piper_voice

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    weights, _ = piper_voice("en_US-joe-medium")
    made = await asyncio.to_thread(aligned_model, weights, "0123456789abcdef99")
    assert isinstance(made, Path)
    assert "0123456789abcdef" in made.name
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    before = made.stat().st_mtime_ns
    assert aligned_model(weights, "0123456789abcdef99") == made
    assert made.stat().st_mtime_ns == before


async def test_a_cache_that_cannot_be_written_costs_a_warning_not_the_word_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from voice_agent.speech.models import piper_voice

    (tmp_path / "voice-agent").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    weights, _ = piper_voice("en_US-joe-medium")
    made = await asyncio.to_thread(aligned_model, weights, "00")
    assert isinstance(made, bytes)
    assert len(made) > 60_000_000
    assert "made again at each start" in caplog.text


async def test_a_file_that_is_no_voice_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    (tmp_path / "bad.onnx.json").write_text("{}")
    synthesizer = PiperSynthesizer(TtsOptions(voice=str(tmp_path / "bad.onnx")), SpeechPool(workers=1), threads=1)
    with pytest.raises(RemediableError, match="no configuration of a Piper voice"):
        synthesizer.load()
