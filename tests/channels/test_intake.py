from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.channels.intake import BACKLOG_S, BURST_S, CATCH_UP, Intake


def ramp(seconds: float, rate: int = 16000) -> bytes:
    return np.arange(int(seconds * rate), dtype="<i2").tobytes()


@given(st.lists(st.integers(0, 1500), min_size=1, max_size=40))
def test_any_chunking_gives_the_same_whole_samples(sizes: list[int]) -> None:
    data = ramp(1.9)
    intake, heard, at = Intake(16000, now=0), b"", 0
    for size in sizes:
        pcm = intake.push(data[at : at + size], now=0)
        assert len(pcm) % 2 == 0
        heard += pcm
        at = min(at + size, len(data))
    assert heard == data[: at & ~1]


@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_other_rates_become_sixteen_thousand(rate: int) -> None:
    intake = Intake(rate, now=0)
    heard = sum(len(intake.push(bytes(rate // 50 * 2), now=i * 0.02)) for i in range(50))
    assert heard == pytest.approx(32000, rel=0.04)


def test_audio_in_real_time_passes_untouched() -> None:
    intake, frame = Intake(16000, now=0), ramp(0.02)
    assert all(intake.push(frame, now=i * 0.02) is frame for i in range(500))
    assert intake.dropped_s == 0


def test_what_a_stall_held_back_is_heard_at_once() -> None:
    intake = Intake(16000, now=0)
    intake.push(ramp(0.02), now=0)
    assert len(intake.push(ramp(1.5), now=1.5)) == len(ramp(1.5))


def test_a_file_sent_at_once_is_heard_at_the_catch_up_rate_and_loses_its_oldest_audio() -> None:
    intake = Intake(16000, now=0)
    sent = [bytes([i % 251, 0]) * 320 for i in range(1000)]  # 20 s in frames
    heard = [pcm for frame in sent if (pcm := intake.push(frame, now=0))]
    assert sum(map(len, heard)) == BURST_S * 32000
    assert intake.dropped_s == pytest.approx(20 - BURST_S - BACKLOG_S)
    later = b"".join(intake.release(now=step / 50) for step in range(1, 200))
    assert later == b"".join(sent)[-int(BACKLOG_S * 32000) :]


def test_a_backlog_is_heard_no_faster_than_the_catch_up_rate() -> None:
    intake = Intake(16000, now=0)
    intake.push(ramp(BURST_S), now=0)
    intake.push(ramp(4), now=0)
    assert intake.waiting
    assert len(intake.release(now=0.5)) <= 0.5 * CATCH_UP * 32000
    wait_s = intake.wait_s(now=0.5)
    assert wait_s is not None
    assert 0 < wait_s <= 0.02
    for now in (10, 11):
        intake.release(now)
    assert intake.wait_s(now=11) is None
