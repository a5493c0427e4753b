"""WAV files: reading what people have, writing what a crash cannot spoil.

Reading accepts PCM of 8, 16, 24 and 32 bits, IEEE float of 32 and 64, µ-law and A-law, plain or in
the extensible format, one channel or more (mixed to mono). A file cut short is read as far as it goes.
"""

from __future__ import annotations

import errno
import struct
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import SAMPLE_RATE
from voice_agent.audio.g711 import alaw_decode, ulaw_decode
from voice_agent.audio.resample import HIGHEST_HZ, LOWEST_HZ, resample
from voice_agent.diagnostics import RemediableError

LARGEST_FILE_BYTES = 1 << 30
"""Longest file that is read: over nine hours at 16 kHz."""


class _Format(IntEnum):
    PCM, FLOAT, ALAW, ULAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE


_REMEDY = (
    "Convert it to 16-bit PCM WAV, mono, 8 to 48 kHz, for example: ffmpeg -i IN -ac 1 -ar 16000 -sample_fmt s16 OUT.wav"
)
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_LARGEST_DATA_BYTES = 0xFFFFFFFF - _HEADER.size


def read_wav(path: str | Path) -> tuple[bytes, int]:
    """Read a WAV file as mono int16 PCM.

    Returns:
        The PCM bytes and their rate in Hz.

    Raises:
        RemediableError: The file is missing, no WAV, too long, or of a kind that is not read.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise RemediableError(f"{path} is larger than 1 GiB.", "Cut it into shorter files.")
        content = path.read_bytes()
    except OSError as error:
        raise RemediableError(
            f"{path} cannot be read: {error.strerror}.", "Name an existing WAV file that this user may read."
        ) from error
    chunks = _chunks(path, content)
    if len(chunks.get(b"fmt ", b"")) < 16 or b"data" not in chunks:
        raise RemediableError(f"{path} has no complete format or no audio.", _REMEDY)
    layout, data = chunks[b"fmt "], chunks[b"data"]
    code, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", layout)
    if code == _Format.EXTENSIBLE and len(layout) >= 26:
        (code,) = struct.unpack_from("<H", layout, 24)
    if not channels or not LOWEST_HZ <= rate <= HIGHEST_HZ:
        raise RemediableError(f"{path} has {channels} channels at {rate} Hz.", _REMEDY)
    samples = _decode(path, bytes(data), code, bits)
    frames = samples[: len(samples) // channels * channels].reshape(-1, channels)
    mono = frames[:, 0] if channels == 1 else frames.mean(axis=1, dtype=np.float64)
    # Mixing is done before rounding, so that eight bits gain nothing and float loses nothing twice.
    return np.clip(np.rint(mono), -32768, 32767).astype("<i2").tobytes(), rate


def read_wav_16k(path: str | Path) -> bytes:
    """Read a WAV file as canonical PCM (16 kHz mono int16). Raises as `read_wav` does."""
    pcm, rate = read_wav(path)
    return resample(pcm, rate, SAMPLE_RATE)


def write_wav(path: str | Path, pcm: bytes, rate: int, channels: int = 1) -> None:
    """Write int16 PCM (interleaved where there are channels) as a WAV file.

    Raises:
        OSError: The file cannot be written.
    """
    with WavWriter(path, rate, channels) as writer:
        writer.write(pcm)


class WavWriter:
    """Writes a WAV file as its audio comes.

    The header is brought up to date once a second of audio, after the data it speaks of, so the file
    is valid and at most a second short whenever the process dies. Every method but `close` may raise
    OSError (a full disk); the file so far stays valid. Use as a context manager.
    """

    def __init__(self, path: str | Path, rate: int, channels: int = 1) -> None:
        """Args: ``rate`` in Hz; ``channels``: number of interleaved int16 channels.

        Raises:
            OSError: The file cannot be created.
        """
        self._rate, self._channels = rate, channels
        self._refresh_bytes = rate * channels * 2
        self._written = self._in_header = 0
        self._file: BinaryIO = Path(path).open("wb")  # noqa: SIM115 - closed by `close`
        try:
            self._file.write(self._header())
            self._file.flush()
        except OSError:
            self.close()
            raise

    @property
    def seconds(self) -> float:
        """Length written so far."""
        return self._written / self._refresh_bytes

    def write(self, pcm: bytes) -> None:
        """Append interleaved int16 PCM: whole sample frames.

        Raises:
            ValueError: Part of a sample frame, or the writer is closed.
            OSError: The disk is full, or the file would outgrow what WAV can say (4 GiB).
        """
        if len(pcm) % (2 * self._channels):
            raise ValueError(f"{len(pcm)} bytes are no whole number of {self._channels}-channel int16 frames")
        if self._written + len(pcm) > _LARGEST_DATA_BYTES:
            raise OSError(errno.EFBIG, "a WAV file cannot hold more than 4 GiB")
        self._file.write(pcm)
        self._written += len(pcm)
        if self._written - self._in_header >= self._refresh_bytes:
            self._refresh()

    def close(self) -> None:
        """Bring the header up to date and close. Idempotent.

        Raises:
            OSError: The rest could not be written; the file is closed all the same.
        """
        if self._file.closed:
            return
        try:
            self._refresh()
        finally:
            self._file.close()

    def _refresh(self) -> None:
        # Data first: a header must never promise samples that are not in the file.
        self._file.flush()
        self._file.seek(0)
        self._file.write(self._header())
        self._file.flush()
        self._file.seek(0, 2)
        self._in_header = self._written

    def _header(self) -> bytes:
        frame = 2 * self._channels
        return _HEADER.pack(
            *(b"RIFF", self._written + _HEADER.size - 8, b"WAVE", b"fmt ", 16, _Format.PCM, self._channels),
            *(self._rate, self._rate * frame, frame, 16, b"data", self._written),
        )

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _chunks(path: Path, content: bytes) -> dict[bytes, memoryview]:
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise RemediableError(f"{path} is no WAV file.", _REMEDY)
    view, at, found = memoryview(content), 12, dict[bytes, memoryview]()
    while at + 8 <= len(content):
        name, size = struct.unpack_from("<4sI", content, at)
        # A size beyond the end is what a recorder that was killed leaves behind.
        found.setdefault(name, view[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found


def _decode(path: Path, data: bytes, code: int, bits: int) -> NDArray[np.floating[Any]] | NDArray[np.int16]:
    """Return samples on the scale of int16."""
    data = data[: len(data) // max(bits // 8, 1) * max(bits // 8, 1)]
    match code, bits:
        case (_Format.PCM, 16):
            return np.frombuffer(data, "<i2")
        case (_Format.PCM, 8):
            return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) * 256
        case (_Format.PCM, 24):
            # Three bytes become the upper three of an int32.
            wide = np.zeros((len(data) // 3, 4), np.uint8)
            wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
            return wide.view("<i4")[:, 0].astype(np.float32) / 65536
        case (_Format.PCM, 32):
            return np.frombuffer(data, "<i4").astype(np.float32) / 65536
        case (_Format.FLOAT, 32 | 64):
            floats = np.frombuffer(data, f"<f{bits // 8}").astype(np.float32)
            return np.nan_to_num(floats, posinf=1.0, neginf=-1.0) * 32768
        case (_Format.ALAW, 8):
            return np.frombuffer(alaw_decode(data), np.int16)
        case (_Format.ULAW, 8):
            return np.frombuffer(ulaw_decode(data), np.int16)
        case _:
            raise RemediableError(f"{path} holds {bits}-bit audio of WAV format {code}, which is not read.", _REMEDY)
