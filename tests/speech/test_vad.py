"""The voice detector on human speech and on the sounds nobody should answer, with the real model."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import sounds
from voice_agent.audio.frames import FRAME_SAMPLES, SILENCE
from voice_agent.config import VadOptions
from voice_agent.speech.protocols import VoiceDetector, Voicing
from voice_agent.speech.silero import BLANK, CHUNK_SAMPLES, SileroModel
from voice_agent.speech.vad import DetectorFactory, TwoStageDetector, WebRtcDetector

pytestmark = pytest.mark.models

SAMPLES_PER_MS = 16


@pytest.fixture(scope="module")
def model() -> SileroModel:
    return SileroModel.load()


def judge(detector: VoiceDetector, pcm: sounds.Pcm) -> list[Voicing]:
    return [detector.push(frame) for frame in sounds.frames(pcm)]


def voiced(detector: VoiceDetector, pcm: sounds.Pcm) -> list[int]:
    return [index for index, voicing in enumerate(judge(detector, pcm)) if voicing.voiced]


def longest_stretch(voicings: list[Voicing]) -> int:
    """Return the most voice, in frames, that a counter reset by three frames without it would see."""
    longest = count = gap = 0
    for voicing in voicings:
        gap = 0 if voicing.voiced else gap + 1
        count = 0 if gap > 3 else count + voicing.voiced + voicing.earlier_frames
        longest = max(longest, count)
    return longest


@dataclass
class Delays:
    """Milliseconds from the first audible sample to the first voiced frame's end; the same at the end."""

    onset: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)

    def add(self, utterance: sounds.Utterance, found: list[int]) -> None:
        if any((index + 1) * FRAME_SAMPLES <= utterance.clip_start for index in found):
            self.early.append(utterance.name)
        # A soft consonant before the first audible sample may well be found: that is no delay.
        inside = [index for index in found if (index + 1) * FRAME_SAMPLES > utterance.start]
        if not inside:
            self.missed.append(utterance.name)
            return
        self.onset.append(((inside[0] + 1) * FRAME_SAMPLES - utterance.start) / SAMPLES_PER_MS)
        self.end.append(((inside[-1] + 1) * FRAME_SAMPLES - utterance.end) / SAMPLES_PER_MS)


@pytest.mark.parametrize("noise_dbfs", [-70, -45, -35])
def test_every_prompt_is_found_within_three_to_five_frames_and_none_early(model: SileroModel, noise_dbfs: float):
    delays = Delays()
    for name, speech in sounds.prompts(60).items():
        utterance = sounds.in_noise(name, speech, noise_dbfs)
        delays.add(utterance, voiced(TwoStageDetector(model), utterance.pcm))
    assert (delays.missed, delays.early) == ([], [])
    assert np.median(delays.onset) <= 80
    assert np.percentile(delays.onset, 90) <= 120


@pytest.mark.parametrize("noise_dbfs", [-70, -45])
def test_the_end_of_speech_is_seen_within_three_frames(model: SileroModel, noise_dbfs: float):
    delays = Delays()
    for name, speech in sounds.prompts(60).items():
        utterance = sounds.in_noise(name, speech, noise_dbfs)
        delays.add(utterance, voiced(TwoStageDetector(model), utterance.pcm))
    assert -40 <= np.median(delays.end) <= 40
    assert np.percentile(delays.end, 90) <= 60


def test_speakers_outside_a_studio_are_found(model: SileroModel):
    delays = Delays()
    recordings = sounds.field_recordings()
    for name, speech in recordings.items():
        utterance = sounds.in_noise(name, speech, -45)
        delays.add(utterance, voiced(TwoStageDetector(model), utterance.pcm))
    assert len(recordings) >= 10
    assert (delays.missed, delays.early) == ([], [])


def test_a_caller_who_speaks_in_the_first_frame_is_found_a_little_later(model: SileroModel):
    delays = Delays()
    for name, speech in sounds.prompts(20, seed=5).items():
        utterance = sounds.in_noise(name, speech, -50, lead_s=0)
        delays.add(utterance, voiced(TwoStageDetector(model), utterance.pcm))
    assert delays.missed == []
    assert np.median(delays.onset) <= 180


def test_a_soft_voice_is_found(model: SileroModel):
    for name, speech in sounds.prompts(20, seed=5).items():
        assert voiced(TwoStageDetector(model), sounds.in_noise(name, speech, -70, peak_dbfs=-30).pcm), name


@pytest.mark.parametrize("word", ["digits/1", "digits/6", "digits/8", "letters/x", "vm-no", "hello", "letters/f"])
def test_a_short_word_counts_as_200_ms_of_voice(model: SileroModel, word: str):
    utterance = sounds.in_noise(word, sounds.prompt(word), -50)
    assert longest_stretch(judge(TwoStageDetector(model), utterance.pcm)) >= 10


@pytest.mark.parametrize("name", ["white noise", "pink noise", "hum", "key clicks", "DTMF", "breath"])
def test_no_frame_of_a_sound_without_speech_is_voiced(model: SileroModel, name: str):
    assert voiced(TwoStageDetector(model), sounds.no_speech(20)[name]) == []


def test_hold_music_never_sounds_like_200_ms_of_voice(model: SileroModel):
    voicings = [judge(TwoStageDetector(model), pcm) for pcm in sounds.hold_music(seconds=60).values()]
    assert all(longest_stretch(piece) < 10 for piece in voicings)
    assert np.mean([voicing.voiced for piece in voicings for voicing in piece]) < 0.002


def test_keys_pressed_right_after_speech_do_not_prolong_it(model: SileroModel):
    utterance = sounds.in_noise("hello", sounds.prompt("hello"), -60, tail_s=0)
    tail = sounds.to_pcm(sounds.dtmf(3))
    last = voiced(TwoStageDetector(model), np.concatenate([utterance.pcm, tail]))[-1]
    assert ((last + 1) * FRAME_SAMPLES - utterance.end) / SAMPLES_PER_MS <= 200


def test_frames_before_a_late_confirmation_are_reported_once_per_stretch(model: SileroModel):
    voicings = judge(TwoStageDetector(model), sounds.in_noise("hello", sounds.prompt("hello"), -60).pcm)
    starts = [now for before, now in zip([Voicing(False, 0), *voicings], voicings, strict=False) if now.earlier_frames]
    assert starts
    assert all(2 <= start.earlier_frames <= 5 and start.voiced for start in starts)


@dataclass
class CountingModel(SileroModel):
    """The real model, counting what it is asked to read."""

    chunks: int = 0

    def __init__(self, real: SileroModel) -> None:
        super().__init__(real._session)

    def run(self, samples, state):
        self.chunks += (len(samples) - 64) // CHUNK_SAMPLES
        return super().run(samples, state)


def test_a_silent_line_costs_no_model_run(model: SileroModel):
    counting = CountingModel(model)
    detector = TwoStageDetector(counting)
    judge(detector, sounds.to_pcm(sounds.white_noise(10, -60)))
    judge(detector, np.zeros(160_000, np.int16))
    assert counting.chunks == 0


def test_one_push_reads_a_bounded_number_of_chunks(model: SileroModel):
    counting = CountingModel(model)
    detector = TwoStageDetector(counting)
    pieces = [sounds.in_noise(name, speech, -45).pcm for name, speech in sounds.prompts(5).items()]
    pieces += list(sounds.hold_music(seconds=10).values())
    for frame in (frame for piece in pieces for frame in sounds.frames(piece)):
        before = counting.chunks
        detector.push(frame)
        assert counting.chunks - before <= 13


def test_callers_who_share_the_model_do_not_hear_each_other(model: SileroModel):
    lines = [sounds.in_noise(name, speech, -45).pcm[:48_000] for name, speech in sounds.prompts(3, seed=2).items()]
    alone = [judge(TwoStageDetector(model), line) for line in lines]
    detectors = [TwoStageDetector(model) for _ in lines]
    together: list[list[Voicing]] = [[] for _ in lines]
    streams: list[Iterator[bytes]] = [sounds.frames(line) for line in lines]
    for parts in zip(*streams, strict=True):
        for detector, voicings, frame in zip(detectors, together, parts, strict=True):
            voicings.append(detector.push(frame))
    assert together == alone


def test_reset_forgets_the_stream(model: SileroModel):
    pcm = sounds.in_noise("hello", sounds.prompt("hello"), -45).pcm
    detector = TwoStageDetector(model)
    first = judge(detector, pcm)
    detector.reset()
    assert judge(detector, pcm) == first


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=700), max_size=10))
def test_a_frame_of_any_length_never_raises(frames: list[bytes]):
    detector = WebRtcDetector()
    for frame in frames:
        assert -96 <= detector.push(frame).level_dbfs <= 0


def test_webrtc_alone_finds_speech_and_is_not_disturbed_by_white_noise():
    utterance = sounds.in_noise("hello", sounds.prompt("hello"), -45)
    found = voiced(WebRtcDetector(), utterance.pcm)
    assert found
    assert utterance.start <= (found[0] + 1) * FRAME_SAMPLES <= utterance.start + 160 * SAMPLES_PER_MS
    assert longest_stretch(judge(WebRtcDetector(), sounds.to_pcm(sounds.white_noise(10, -30)))) < 10


def test_the_factory_makes_what_was_configured():
    silero, webrtc = DetectorFactory(VadOptions()), DetectorFactory(VadOptions(name="webrtc"))
    silero.load()
    webrtc.load()
    assert type(silero()) is TwoStageDetector
    assert type(webrtc()) is WebRtcDetector
    assert silero() is not silero()
    assert not silero().push(SILENCE).voiced


def test_the_blank_state_is_never_written_to(model: SileroModel):
    judge(TwoStageDetector(model), sounds.in_noise("hello", sounds.prompt("hello"), -45).pcm)
    assert not any(part.any() for part in BLANK)
