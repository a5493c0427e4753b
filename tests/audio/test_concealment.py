"""Concealment: lost audio sounds on, fades, and never clicks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voice_agent.audio.concealment import FADE_S, HOLD_S, Concealer


def voiced(seconds: float, rate: int, pitch_hz: float = 120.0) -> np.ndarray:
    """A periodic sound with the harmonics of a voice."""
    at = np.arange(int(seconds * rate)) / rate
    wave = sum(np.sin(2 * np.pi * pitch_hz * k * at) / k for k in range(1, 9))
    return (wave * 5000).astype(np.int16)


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("pitch_hz", [90.0, 120.0, 210.0])
def test_a_lost_frame_of_a_voice_goes_on_as_it_would_have(rate: int, pitch_hz: float) -> None:
    sound, frame = voiced(0.2, rate, pitch_hz), rate // 50
    concealer = Concealer(rate)
    concealer.good(sound[: 5 * frame].tobytes())
    made = np.frombuffer(concealer.lost(frame), np.int16).astype(float)
    true = sound[5 * frame : 6 * frame].astype(float)
    likeness = float(made @ true / np.sqrt((made @ made) * (true @ true)))
    assert likeness > 0.9


def test_it_fades_to_silence() -> None:
    concealer = Concealer(8000)
    concealer.good(voiced(0.2, 8000).tobytes())
    made = np.abs(np.frombuffer(concealer.lost(1600), np.int16).astype(int))
    assert made[:160].max() > 5000
    assert made[int((HOLD_S + FADE_S) * 8000) + 1 :].max() == 0


def test_what_comes_after_begins_without_a_click() -> None:
    sound = voiced(0.4, 8000)
    concealer = Concealer(8000)
    out = concealer.good(sound[:800].tobytes()) + concealer.lost(480) + concealer.good(sound[1280:2400].tobytes())
    heard = np.frombuffer(out, np.int16).astype(int)
    assert np.abs(np.diff(heard)).max() <= np.abs(np.diff(sound.astype(int))).max() * 1.5


def test_nothing_lost_is_nothing_changed() -> None:
    sound = voiced(0.3, 8000).tobytes()
    concealer = Concealer(8000)
    assert b"".join(concealer.good(sound[at : at + 320]) for at in range(0, len(sound), 320)) == sound


def test_a_loss_in_silence_is_silence() -> None:
    concealer = Concealer(8000)
    concealer.good(bytes(3200))
    assert concealer.lost(160) == bytes(320)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=30), st.sampled_from([8000, 16000]))
def test_any_sequence_keeps_the_time_to_the_sample(parts: list[tuple[bool, int]], rate: int) -> None:
    concealer, dice = Concealer(rate), np.random.default_rng(0)
    for lost, samples in parts:
        noise = dice.integers(-32768, 32768, samples).astype(np.int16).tobytes()
        made = concealer.lost(samples) if lost else concealer.good(noise)
        assert len(made) == samples * 2
