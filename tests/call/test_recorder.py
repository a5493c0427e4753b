"""A recording is whole, in step, and never the caller's problem."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import av
import numpy as np
import pytest

from tests.fakes.conversation import ScriptedConversation, Speaker, says
from tests.fakes.wire import LOUD, FakeWire
from tests.support.calls import place
from voice_agent.call.recorder import Recorder
from voice_agent.call.recording_file import Format, RecordingFile


def _read(path: Path) -> np.ndarray:
    data = path.read_bytes()
    assert data[:4] == b"RIFF"
    return np.frombuffer(data[44:], "<i2").reshape(-1, 2)


async def _record(recorder: Recorder, feed: object) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(recorder.run())
        feed(recorder)  # type: ignore[operator]
        await recorder.close()


async def test_both_sides_lie_where_they_were_heard(tmp_path: Path) -> None:
    def feed(recorder: Recorder) -> None:
        for tick in range(300):
            now = 100.0 + tick * 0.02
            recorder.caller(np.full(320, 1000 if 1.0 <= tick * 0.02 < 1.5 else 0, "<i2").tobytes(), now)
            if 2.0 <= tick * 0.02 < 3.0:
                recorder.agent(np.full(320, 2000, "<i2").tobytes(), now)

    recorder = Recorder(tmp_path / "deep" / "folder", "call")
    await _record(recorder, feed)
    audio = _read(recorder.path)
    left, right = np.flatnonzero(audio[:, 0]) / 16000, np.flatnonzero(audio[:, 1]) / 16000
    assert (left[0], left[-1]) == (pytest.approx(1.0, abs=0.03), pytest.approx(1.5, abs=0.03))
    assert (right[0], right[-1]) == (pytest.approx(2.0, abs=0.03), pytest.approx(3.0, abs=0.03))
    assert len(audio) / 16000 == pytest.approx(6.0, abs=0.03)


async def test_cleared_audio_was_not_heard_and_is_not_recorded(tmp_path: Path) -> None:
    def feed(recorder: Recorder) -> None:
        recorder.caller(bytes(640), 0.0)
        for tick in range(50):
            recorder.agent(np.full(320, 2000, "<i2").tobytes(), tick * 0.02)
        recorder.clear(0.5)
        for tick in range(1, 100):
            recorder.caller(bytes(640), tick * 0.02)

    recorder = Recorder(tmp_path, "call")
    await _record(recorder, feed)
    right = np.flatnonzero(_read(recorder.path)[:, 1]) / 16000
    assert right[-1] == pytest.approx(0.5, abs=0.001)


async def test_a_gap_in_the_callers_audio_is_silence_and_shifts_nothing(tmp_path: Path) -> None:
    def feed(recorder: Recorder) -> None:
        for tick in (*range(50), *range(150, 200)):
            recorder.caller(np.full(320, 1000, "<i2").tobytes(), tick * 0.02)

    recorder = Recorder(tmp_path, "call")
    await _record(recorder, feed)
    left = _read(recorder.path)[:, 0]
    assert not left[int(1.1 * 16000) : int(2.9 * 16000)].any()
    assert left[int(3.1 * 16000)] == 1000


async def test_a_codec_that_breaks_ends_the_recording_and_not_the_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: RecordingFile, pcm: bytes) -> None:
        raise ValueError("no codec is like this")

    monkeypatch.setattr(RecordingFile, "write", broken)
    talk, recorder = ScriptedConversation(says("Hello.")), Recorder(tmp_path, "call")
    outcome = await place(FakeWire(3.0), talk, recorder=recorder)
    assert outcome.reason == "caller_hang_up"
    assert talk.heard() == ["Hello."]
    assert recorder.failed
    assert sum("ended early: no codec is like this" in r.message for r in caplog.records) == 1


@pytest.mark.parametrize("fault", ["unwritable", "full"])
async def test_a_disk_that_fails_ends_the_recording_with_one_line_and_not_the_call(
    fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "unwritable":
        (tmp_path / "file").write_text("not a directory")
        directory = tmp_path / "file"
    else:
        directory = tmp_path
        directory.joinpath("call.wav").symlink_to("/dev/full")
    wire = FakeWire(1.0)
    talk = ScriptedConversation(says("Hello."))
    with caplog.at_level(logging.WARNING):
        outcome = await place(wire, talk, recorder=Recorder(directory, "call"))
    assert (outcome.outcome, talk.heard()) == ("disconnected", ["Hello."])
    (line,) = [r.getMessage() for r in caplog.records]
    assert "recording" in line and "Free space" in line


async def test_a_whole_call_is_recorded_as_it_was_heard(tmp_path: Path) -> None:
    async def long(speaker: Speaker) -> None:
        speaker.say("One two three four five six seven eight nine ten.")

    wire = FakeWire(2.5)
    wire.speak(1.0, "stop please stop please")
    recorder = Recorder(tmp_path, "call")
    await place(wire, ScriptedConversation(long, says("")), recorder=recorder)
    audio = _read(recorder.path)
    caller = np.flatnonzero(audio[:, 0] == LOUD + 1) / 16000
    agent = np.flatnonzero(np.abs(audio[:, 1]) > 100) / 16000
    assert caller[0] == pytest.approx(1.0, abs=0.08)
    assert agent[0] <= 0.1
    assert agent[-1] - caller[0] <= 0.25


@pytest.mark.parametrize("format", ["wav", "opus"])
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.4, 1.0, 1.7])
async def test_a_recording_is_whole_after_a_hang_up_at_any_instant(
    tmp_path: Path, seconds: float, format: Format
) -> None:
    wire = FakeWire(seconds)
    recorder = Recorder(tmp_path, "call", format)
    await place(wire, ScriptedConversation(says("One two three four five six seven.")), recorder=recorder)
    assert not recorder.failed
    with av.open(str(recorder.path)) as container:
        length = sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
    assert length == pytest.approx(recorder.seconds, abs=0.03)
    assert length == pytest.approx(seconds, abs=0.15)
    peaks = recorder.path.with_suffix(".peaks").read_bytes()
    assert len(peaks) / 40 == pytest.approx(length, abs=0.06)
