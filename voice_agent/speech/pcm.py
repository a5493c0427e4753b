"""Keeps what is not audio off the wire."""

from __future__ import annotations

from voice_agent.speech.protocols import EngineError

_CONTAINERS = {b"RIFF": "a WAV file", b"OggS": "an Ogg file", b"fLaC": "a FLAC file", b"ID3": "an MP3 file"}
# Real speech does not hold this many bytes that are all printable ASCII: every second byte is the
# upper half of a sample, which is near 0 or 255 at speech level.
_TEXT_PROBE_BYTES = 64


def check_pcm(pcm: bytes) -> bytes:
    """Return ``pcm`` if it can be int16 audio.

    Raises:
        EngineError: It is empty, has half a sample, or is a sound file or a text (an error page, JSON)
            where bare samples were due. Played out, these are loud noise.
    """
    if not pcm:
        raise EngineError("the engine returned no audio for a text that can be spoken")
    for magic, kind in _CONTAINERS.items():
        if pcm.startswith(magic):
            raise EngineError(f"the engine returned {kind} instead of bare PCM samples")
    probe = pcm[:_TEXT_PROBE_BYTES]
    if len(probe) >= 8 and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in probe):
        raise EngineError("the engine returned text instead of PCM samples, probably an error message")
    if len(pcm) % 2:
        raise EngineError(f"the engine returned {len(pcm)} bytes, which is no whole number of int16 samples")
    return pcm
