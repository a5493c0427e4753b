from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from voice_agent.config import EndOfTurnOptions, Integrations, SpeechOptions, TtsOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.service.engines import END_OF_TURN, build_engines
from voice_agent.speech.piper import PiperSynthesizer
from voice_agent.speech.pool import SpeechPool
from voice_agent.speech.protocols import EngineError, Priority, Transcript, Urgency
from voice_agent.speech.smart_turn import SmartTurn, TurnAwareRecognizer

SECOND = np.zeros(16000, np.int16)


class Words:
    """A recogniser with an opinion of its own."""

    def __init__(self, own: float | None = 0.9, fails: bool = False) -> None:
        self.own, self.fails = own, fails

    async def transcribe(
        self, pcm: NDArray[np.int16], *, priority: Priority | Urgency = Priority.FINAL_TRANSCRIPT
    ) -> Transcript:
        await asyncio.sleep(0)
        if self.fails:
            raise EngineError("broken")
        return Transcript("I need a technician.", 1.0, stop_probability=self.own)


class Opinion(SmartTurn):
    def __init__(self, value: float | Exception) -> None:
        super().__init__(EndOfTurnOptions(), 1)
        self.value, self.asked = value, 0

    def probability(self, pcm: NDArray[np.int16]) -> float:
        self.asked += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


async def judged(words: Words, model: Opinion, *, workers: int = 2, priority: Priority) -> float | None:
    pool = SpeechPool(workers)
    pool.start()
    try:
        return (await TurnAwareRecognizer(words, model, pool).transcribe(SECOND, priority=priority)).stop_probability
    finally:
        await pool.aclose(1)
        assert [t for t in asyncio.all_tasks() if t.get_name() == "end-of-turn"] == []


@pytest.mark.parametrize(("own", "model", "taken"), [(0.9, 0.2, 0.2), (0.3, 0.8, 0.3), (None, 0.4, 0.4)])
async def test_the_lower_opinion_counts(own: float | None, model: float, taken: float) -> None:
    assert await judged(Words(own), Opinion(model), priority=Priority.SPECULATIVE_TRANSCRIPT) == taken


async def test_without_a_worker_to_spare_the_words_decide() -> None:
    model = Opinion(0.1)
    assert await judged(Words(), model, workers=1, priority=Priority.SPECULATIVE_TRANSCRIPT) == 0.9
    assert model.asked == 0


async def test_partial_transcripts_are_not_judged() -> None:
    model = Opinion(0.1)
    assert await judged(Words(), model, priority=Priority.PARTIAL_TRANSCRIPT) == 0.9
    assert model.asked == 0


async def test_a_model_that_fails_has_no_opinion() -> None:
    assert await judged(Words(), Opinion(ValueError("bad window")), priority=Priority.FINAL_TRANSCRIPT) == 0.9


async def test_a_recogniser_that_fails_says_so_and_leaves_nothing() -> None:
    with pytest.raises(EngineError):
        await judged(Words(fails=True), Opinion(0.5), priority=Priority.FINAL_TRANSCRIPT)


def test_a_model_that_cannot_be_had_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RemediableError, match="is no file"):
        SmartTurn(EndOfTurnOptions(path=tmp_path / "none.onnx"), 1).load()
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(RemediableError, match="no model that can be run"):
        SmartTurn(EndOfTurnOptions(path=tmp_path / "bad.onnx"), 1).load()


def test_it_is_loaded_only_when_asked_for() -> None:
    assert END_OF_TURN not in build_engines(Integrations()).loads
    asked = Integrations(speech=SpeechOptions(end_of_turn=EndOfTurnOptions(name="smart-turn")))
    assert END_OF_TURN in build_engines(asked).loads


@pytest.mark.models
async def test_halves_of_lines_are_less_over_than_the_whole_ones(spoken: PiperSynthesizer) -> None:
    model = SmartTurn(EndOfTurnOptions(name="smart-turn"), 1)
    model.load()
    # A line is never as silent as a synthesiser: a pause has the faint noise of a room.
    pause = (np.random.default_rng(1).standard_normal(3200) * 12).astype(np.int16)
    wholes, halves = [], []
    for line in (
        "When are you open on Sunday?",
        "My internet has been down since this morning.",
        "I would like to pay my bill.",
        "Can you send somebody to have a look at it?",
    ):
        said = np.frombuffer((await spoken.synthesize(line)).pcm, np.int16)
        said = said[: np.flatnonzero(np.abs(said) > 300)[-1]]
        wholes.append(model.probability(np.concatenate([said, pause])))
        halves.append(model.probability(np.concatenate([said[: len(said) // 2], pause])))
    assert np.mean(wholes) > 0.7
    assert np.mean(halves) < np.mean(wholes)
    assert 0.0 <= model.probability(SECOND[:0]) <= 1.0


@pytest.fixture
async def spoken() -> AsyncIterator[PiperSynthesizer]:
    # Every rendering of a line differs; a test needs the same one each time.
    onnxruntime.set_seed(7)
    pool = SpeechPool(1)
    pool.start()
    synthesizer = PiperSynthesizer(TtsOptions(), pool, 1)
    await asyncio.to_thread(synthesizer.load)
    yield synthesizer
    await pool.aclose(2)
