"""The canonical frame, and exact re-framing of whatever chunks a wire delivers.

Canonical PCM is 16 kHz, mono, int16, little-endian. A frame is 20 ms of it: 320 samples, 640 bytes.
"""

from __future__ import annotations

SAMPLE_RATE = 16000
FRAME_MS = 20
FRAME_SAMPLES = SAMPLE_RATE * FRAME_MS // 1000
SAMPLE_BYTES = 2
FRAME_BYTES = FRAME_SAMPLES * SAMPLE_BYTES
SILENCE = bytes(FRAME_BYTES)
"""One frame of digital silence."""


class Reframer:
    """Cuts a byte stream into frames of one size, whatever the sizes of its chunks.

    The frames joined are the chunks joined, byte for byte; half a sample waits for its other half
    like any other remainder. Less than one frame is ever kept.
    """

    __slots__ = ("_frame_bytes", "_rest")

    def __init__(self, frame_bytes: int = FRAME_BYTES) -> None:
        """Args: ``frame_bytes``: size of a frame in bytes.

        Raises:
            ValueError: The size is not a positive number of whole samples.
        """
        if frame_bytes <= 0 or frame_bytes % SAMPLE_BYTES:
            raise ValueError(f"a frame must be a positive even number of bytes, not {frame_bytes}")
        self._frame_bytes = frame_bytes
        self._rest = b""

    @property
    def buffered(self) -> int:
        """Bytes that wait for the rest of their frame."""
        return len(self._rest)

    def push(self, data: bytes) -> list[bytes]:
        """Take the next chunk, return the frames that are complete now (possibly none)."""
        size = self._frame_bytes
        # The usual chunk is exactly one frame: hand it through without copying.
        if len(data) == size and not self._rest:
            return [bytes(data)]
        data = self._rest + data
        whole = len(data) - len(data) % size
        self._rest = data[whole:]
        return [data[at : at + size] for at in range(0, whole, size)]

    def flush(self) -> bytes:
        """Return what is left as a last frame, zero-padded, or ``b""``. Half a sample is dropped."""
        rest = self._rest[: len(self._rest) & ~1]
        self._rest = b""
        return rest.ljust(self._frame_bytes, b"\0") if rest else b""

    def reset(self) -> None:
        """Forget what is buffered."""
        self._rest = b""
