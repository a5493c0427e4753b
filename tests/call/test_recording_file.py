"""The files of a recording: whole whenever the process dies, for their owner only, with their loudness beside them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from voice_agent.call.recording_file import Format, RecordingFile

RATE = 16_000


def _tone(seconds: float, left: int, right: int) -> bytes:
    wave_form = np.sin(np.arange(int(seconds * RATE)) * 2 * np.pi * 440 / RATE)
    return np.stack([wave_form * left, wave_form * right], 1).astype("<i2").tobytes()


def _decoded(path: Path) -> np.ndarray:
    """Return the audio as floats of shape (n, 2) at 16 kHz, by a decoder that is not ours."""
    import av

    with av.open(str(path)) as container:
        resampler = av.AudioResampler(format="fltp", layout="stereo", rate=RATE)
        parts = [out.to_ndarray() for f in container.decode(audio=0) for out in resampler.resample(f)]
    return np.concatenate(parts, axis=1).T


@pytest.mark.parametrize("format", ["wav", "opus"])
def test_caller_is_left_and_agent_right(tmp_path: Path, format: Format) -> None:
    path = tmp_path / "calls" / f"call.{format}"
    file = RecordingFile(path, format)
    file.write(_tone(1, 8000, 0))
    file.write(_tone(1.5, 0, 8000))
    file.close()
    file.close()
    audio = _decoded(path)
    assert len(audio) / RATE == pytest.approx(2.5, abs=0.03)
    loud = np.sqrt(np.mean(audio[: 2 * RATE].reshape(2, RATE, 2) ** 2, axis=1))
    assert loud[0, 0] > 20 * loud[0, 1]
    assert loud[1, 1] > 5 * loud[1, 0]


@pytest.mark.parametrize("format", ["wav", "opus"])
def test_only_the_owner_may_read_a_recording(tmp_path: Path, format: Format) -> None:
    path = tmp_path / "calls" / f"call.{format}"
    RecordingFile(path, format).close()
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path.parent, path, path.with_suffix(".peaks"))]
    assert modes == [0o700, 0o600, 0o600]


def test_the_peaks_are_the_largest_samples_of_each_twentieth_of_a_second(tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    file = RecordingFile(path, "wav")
    samples = np.zeros((RATE + 500, 2), "<i2")
    samples[0, 0], samples[900, 1], samples[RATE + 100, 0] = -32768, 12_800, 32767
    # In uneven portions: a peak never falls between two of them.
    for begin in range(0, len(samples), 777):
        file.write(samples[begin : begin + 777].tobytes())
    file.close()
    peaks = np.frombuffer(path.with_suffix(".peaks").read_bytes(), np.uint8).reshape(-1, 2)
    assert len(peaks) == 21
    assert peaks[:, 0].tolist() == [255] + [0] * 19 + [255]
    assert peaks[:, 1].tolist() == [0, 100] + [0] * 19


@pytest.mark.parametrize("format", ["wav", "opus"])
def test_what_a_killed_process_has_written_can_be_heard(tmp_path: Path, format: Format) -> None:
    path = tmp_path / f"call.{format}"
    script = (
        "import sys, pathlib, numpy as np; from voice_agent.call.recording_file import RecordingFile\n"
        "file = RecordingFile(pathlib.Path(sys.argv[1]), sys.argv[2])\n"
        "for _ in range(5): file.write(np.full((16000, 2), 4000, '<i2').tobytes())\n"
        "print('written', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path), format], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"written\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(_decoded(path)) / RATE >= 3
    assert len(path.with_suffix(".peaks").read_bytes()) == 5 * 20 * 2
    if format == "wav":
        with wave.open(str(path)) as read:
            assert read.getnframes() >= 4 * RATE


def test_a_directory_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "calls").write_text("a file")
    for format in ("wav", "opus"):
        with pytest.raises(OSError):
            RecordingFile(tmp_path / "calls" / f"call.{format}", format)  # type: ignore[arg-type]
