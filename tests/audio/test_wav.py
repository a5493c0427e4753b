"""Whatever WAV people have is read or refused with its remedy; what is written survives a crash."""

import contextlib
import errno
import os
import resource
import signal
import struct
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from voice_agent.audio.g711 import alaw_encode, ulaw_encode
from voice_agent.audio.wav import WavWriter, read_wav, read_wav_16k, write_wav
from voice_agent.diagnostics import RemediableError

TONE = (9000 * np.sin(2 * np.pi * 440 * np.arange(4000) / 16000)).astype("<i2")


def riff(code: int, bits: int, data: bytes, *, channels: int = 1, rate: int = 16000, extensible: bool = False) -> bytes:
    block = bits // 8 * channels
    layout = struct.pack("<HHIIHH", 0xFFFE if extensible else code, channels, rate, rate * block, block, bits)
    if extensible:
        guid_tail = bytes.fromhex("000000001000800000aa00389b71")
        layout += struct.pack("<HHIH", 22, bits, 4, code) + guid_tail
    body = b"WAVEfmt " + struct.pack("<I", len(layout)) + layout
    body += b"LIST" + struct.pack("<I", 3) + b"abc\0"
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


ENCODINGS = {
    "8 bit": (1, 8, (TONE // 256 + 128).astype(np.uint8).tobytes(), 256),
    "16 bit": (1, 16, TONE.tobytes(), 0),
    "24 bit": (1, 24, (TONE.astype("<i4") << 8).view(np.uint8).reshape(-1, 4)[:, :3].tobytes(), 0),
    "32 bit": (1, 32, (TONE.astype("<i4") << 16).tobytes(), 0),
    "float": (3, 32, (TONE / 32768).astype("<f4").tobytes(), 0),
    "double": (3, 64, (TONE / 32768).astype("<f8").tobytes(), 0),
    "A-law": (6, 8, alaw_encode(TONE.tobytes()), 300),
    "µ-law": (7, 8, ulaw_encode(TONE.tobytes()), 300),
}


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_encoding_is_read_as_the_same_samples(tmp_path: Path, encoding: str, extensible: bool):
    code, bits, data, tolerance = ENCODINGS[encoding]
    (tmp_path / "a.wav").write_bytes(riff(code, bits, data, extensible=extensible))
    pcm, rate = read_wav(tmp_path / "a.wav")
    read = np.frombuffer(pcm, "<i2").astype(int)
    assert rate == 16000
    assert len(read) == len(TONE)
    assert np.abs(read - TONE).max() <= tolerance


def test_stereo_is_mixed_without_overflow(tmp_path: Path):
    both = np.stack([np.full(100, 32767), np.full(100, 32765)], axis=1).astype("<i2")
    (tmp_path / "a.wav").write_bytes(riff(1, 16, both.tobytes(), channels=2))
    assert set(np.frombuffer(read_wav(tmp_path / "a.wav")[0], "<i2")) == {32766}


def test_float_beyond_full_scale_or_not_a_number_is_clipped(tmp_path: Path):
    values = np.array([2.0, -2.0, np.nan, np.inf, -np.inf], "<f4")
    (tmp_path / "a.wav").write_bytes(riff(3, 32, values.tobytes()))
    assert np.frombuffer(read_wav(tmp_path / "a.wav")[0], "<i2").tolist() == [32767, -32768, 0, 32767, -32768]


def test_what_is_written_is_read_back_by_us_and_by_the_standard_library(tmp_path: Path):
    path = tmp_path / "a.wav"
    write_wav(path, TONE.tobytes(), 22050)
    assert read_wav(path) == (TONE.tobytes(), 22050)
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 22050, len(TONE))


def test_canonical_reading_keeps_the_duration(tmp_path: Path):
    write_wav(tmp_path / "a.wav", bytes(2 * 8000), 8000)
    assert len(read_wav_16k(tmp_path / "a.wav")) == 2 * 16000


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "no WAV file"),
        (b"ID3 this is an mp3", "no WAV file"),
        (b"RIFF\0\0\0\0WAVE", "no complete format"),
        (riff(1, 16, b"")[:30], "no complete format"),
        (riff(2, 4, b"\0"), "4-bit audio of WAV format 2"),
        (riff(1, 0, b"\0"), "0-bit audio"),
        (riff(1, 16, b"", channels=0), "0 channels"),
        (riff(1, 16, b"", rate=4000), "4000 Hz"),
        (riff(1, 16, b"", rate=192000), "192000 Hz"),
    ],
)
def test_what_is_not_read_is_refused_with_file_cause_and_remedy(tmp_path: Path, content: bytes, what: str):
    path = tmp_path / "prompt.wav"
    path.write_bytes(content)
    with pytest.raises(RemediableError) as caught:
        read_wav_16k(path)
    assert what in caught.value.message
    assert "prompt.wav" in caught.value.message
    assert "16-bit PCM WAV" in caught.value.remedy


def test_a_missing_file_or_a_directory_is_refused_by_name(tmp_path: Path):
    for path in (tmp_path / "nowhere.wav", tmp_path):
        with pytest.raises(RemediableError, match=path.name):
            read_wav(path)


@pytest.mark.parametrize("cut", range(0, 90, 7))
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes_or_refused(tmp_path: Path, cut: int):
    whole = riff(1, 16, TONE[:20].tobytes())
    path = tmp_path / "a.wav"
    path.write_bytes(whole[: len(whole) - cut])
    try:
        pcm, _ = read_wav(path)
    except RemediableError:
        assert cut > 40
    else:
        assert TONE.tobytes().startswith(pcm)


def test_a_recording_is_valid_at_every_second_while_it_grows(tmp_path: Path):
    path = tmp_path / "call.wav"
    with WavWriter(path, 16000, 2) as writer:
        with wave.open(str(path)) as file:
            assert file.getnframes() == 0
        for second in range(1, 4):
            for _ in range(50):
                writer.write(bytes(320 * 2 * 2))
            with wave.open(str(path)) as file:
                assert file.getnframes() == second * 16000
                assert len(file.readframes(second * 16000)) == second * 64000
        assert writer.seconds == 3


def test_a_killed_recorder_leaves_a_valid_file_at_most_a_second_short(tmp_path: Path):
    path = tmp_path / "call.wav"
    script = (
        "import sys, os, signal\n"
        "from voice_agent.audio.wav import WavWriter\n"
        "writer = WavWriter(sys.argv[1], 16000)\n"
        "for _ in range(90): writer.write(b'\\x01\\x02' * 320)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    with wave.open(str(path)) as file:
        assert 0.8 <= file.getnframes() / 16000 <= 1.8
        assert set(file.readframes(file.getnframes())) == {1, 2}


def test_a_full_disk_raises_to_the_caller(tmp_path: Path):
    link = tmp_path / "call.wav"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        WavWriter(link, 16000)


def test_a_disk_that_fills_up_leaves_the_file_valid_and_closed(tmp_path: Path):
    path = tmp_path / "call.wav"
    writer = WavWriter(path, 16000)
    writer.write(b"\1\2" * 16000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    try:
        with pytest.raises(OSError):
            for _ in range(100):
                writer.write(b"\3\4" * 16000)
        with contextlib.suppress(OSError):
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    writer.close()
    assert read_wav(path)[0] == b"\1\2" * 16000


def test_writing_after_the_end_or_part_of_a_frame_is_an_error(tmp_path: Path):
    writer = WavWriter(tmp_path / "a.wav", 16000, 2)
    with pytest.raises(ValueError, match="2-channel"):
        writer.write(bytes(6))
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(bytes(4))
