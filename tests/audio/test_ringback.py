"""The ringing tone is soft, without clicks, and goes on for as long as somebody waits."""

from __future__ import annotations

import itertools

import numpy as np

from voice_agent.audio.frames import FRAME_BYTES, SAMPLE_RATE
from voice_agent.audio.level import dbfs
from voice_agent.audio.ringback import PEAK, RINGS_S, endless, ringback


def test_a_ring_is_soft_and_begins_and_ends_without_a_click() -> None:
    samples = np.frombuffer(ringback(), np.int16).astype(int)
    assert np.abs(samples).max() <= PEAK
    assert np.abs(np.diff(samples)).max() < PEAK / 2
    assert samples[0] == samples[round(RINGS_S * SAMPLE_RATE) - 1] == 0
    assert -40 < dbfs(ringback()[: FRAME_BYTES * 90]) < -25


def test_two_tones_ring() -> None:
    samples = np.frombuffer(ringback(), np.int16)[:SAMPLE_RATE]
    spectrum = np.abs(np.fft.rfft(samples))
    assert set(np.argsort(spectrum)[-2:]) == {440, 480}


def test_a_sound_goes_on_and_on_in_whole_frames() -> None:
    frames = list(itertools.islice(endless(b"\1" * (FRAME_BYTES + 2)), 5))
    assert [len(frame) for frame in frames] == [FRAME_BYTES] * 5
    assert frames[0] == frames[2] == frames[4]
    assert frames[1] == b"\1\1" + bytes(FRAME_BYTES - 2)
    assert list(endless(b"")) == []
