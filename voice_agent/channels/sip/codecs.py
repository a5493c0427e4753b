"""Between canonical PCM and what is in the packets. G.722 is libav's, through PyAV, where that is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from voice_agent.audio import g711
from voice_agent.channels.sip.sdp import Codec


class Transcoder(Protocol):
    """Both directions of one call; int16 mono at the codec's rate."""

    def encode(self, pcm: bytes) -> bytes: ...

    def decode(self, payload: bytes) -> bytes: ...


def available(names: Sequence[str]) -> list[str]:
    """Return those of the codecs that can be spoken here."""
    has_av = importlib.util.find_spec("av") is not None
    return [name for name in names if name != "g722" or has_av]


def transcoder(codec: Codec) -> Transcoder:
    """Return one for a new call."""
    if codec.name == "g722":
        return _G722()
    encode, decode = {
        "pcmu": (g711.ulaw_encode, g711.ulaw_decode),
        "pcma": (g711.alaw_encode, g711.alaw_decode),
    }[codec.name]
    return _G711(encode, decode)


class _G711:
    def __init__(self, encode: Callable[[bytes], bytes], decode: Callable[[bytes], bytes]) -> None:
        self.encode, self.decode = encode, decode


class _G722:
    """Keeps the state of both predictors, as the codec demands."""

    def __init__(self) -> None:
        import av

        self._av = av
        self._encoder, self._decoder = self._context("w"), self._context("r")
        self._at = 0

    def _context(self, mode: Literal["r", "w"]) -> Any:
        context: Any = self._av.CodecContext.create("g722", mode)
        context.sample_rate, context.layout = 16000, "mono"
        if mode == "w":
            context.format = "s16"
        context.open()
        return context

    def encode(self, pcm: bytes) -> bytes:
        samples = np.frombuffer(pcm, np.int16)
        frame = self._av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts = 16000, self._at
        self._at += len(samples)
        return b"".join(bytes(packet) for packet in self._encoder.encode(frame))

    def decode(self, payload: bytes) -> bytes:
        frames = self._decoder.decode(self._av.Packet(payload))
        return b"".join(frame.to_ndarray().astype(np.int16).tobytes() for frame in frames)
