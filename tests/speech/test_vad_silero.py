"""Silero read in bursts says what it says of the whole stream; a missing model says what to install."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest

from tests.support import sounds
from voice_agent.config import VadOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.speech.silero import BLANK, CHUNK_SAMPLES, CONTEXT_SAMPLES, SileroModel, SileroStream
from voice_agent.speech.vad import DetectorFactory


@pytest.fixture(scope="module")
def model() -> SileroModel:
    return SileroModel.load()


@pytest.mark.models
def test_a_stream_read_frame_by_frame_gives_the_probabilities_of_the_whole(model: SileroModel):
    pcm = sounds.in_noise("hello", sounds.prompt("hello"), -45).pcm
    stream, told = SileroStream(model), []
    for count, frame in enumerate(sounds.frames(pcm), start=1):
        stream.remember(frame)
        stream.read()
        if stream.is_caught_up and count * 320 % CHUNK_SAMPLES == 0:
            told.append(stream.probability_now())
    samples = np.concatenate([np.zeros(CONTEXT_SAMPLES), pcm]).astype(np.float32) / 32768
    whole = samples[: CONTEXT_SAMPLES + len(pcm) // CHUNK_SAMPLES * CHUNK_SAMPLES]
    expected, _ = model.run(whole, BLANK)
    # Every eighth frame ends with a chunk. The stream began in half a second of silence, so the two
    # states come together only after a while.
    ends = expected[4::5]
    assert np.abs(np.array(told[: len(ends)])[10:] - ends[: len(told)][10:]).max() < 0.1


@pytest.mark.models
def test_reading_after_a_long_pause_catches_up_within_three_frames(model: SileroModel):
    stream = SileroStream(model)
    pcm = sounds.to_pcm(sounds.white_noise(5, -50))
    for frame in list(sounds.frames(pcm))[:-2]:
        stream.remember(frame)
    stream.read()
    assert not stream.is_caught_up
    for frame in list(sounds.frames(pcm))[-2:]:
        stream.remember(frame)
        stream.read()
    assert stream.is_caught_up
    assert stream.probability_now() < 0.1


@pytest.mark.models
def test_looking_at_part_of_a_chunk_changes_nothing(model: SileroModel):
    plain, curious = SileroStream(model), SileroStream(model)
    for frame in sounds.frames(sounds.prompt("hello")):
        for stream in (plain, curious):
            stream.remember(frame)
            stream.read()
        curious.probability_now()
        assert plain.mean_probability() == curious.mean_probability()


def test_a_missing_package_is_named_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RemediableError, match=r'pip install "voice-agent\[whisper\]"'):
        DetectorFactory(VadOptions()).load()


@pytest.mark.parametrize(("weights", "what"), [(None, "missing"), (b"no model", "not the Silero model")])
def test_missing_or_foreign_weights_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, weights: bytes | None, what: str
):
    spec = ModuleSpec("faster_whisper", None)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    if weights is not None:
        (tmp_path / "assets").mkdir()
        (tmp_path / "assets" / "silero_vad_v6.onnx").write_bytes(weights)
    with pytest.raises(RemediableError, match=what) as caught:
        SileroModel.load()
    assert "voice-agent[whisper]" in caught.value.remedy


def test_webrtc_needs_no_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    factory = DetectorFactory(VadOptions(name="webrtc"))
    factory.load()
    assert not factory().push(bytes(640)).voiced
