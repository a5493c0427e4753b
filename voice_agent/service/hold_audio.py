"""The sounds that callers hear while they are put through, read once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from voice_agent.audio.frames import SAMPLE_BYTES, SAMPLE_RATE
from voice_agent.audio.resample import resample
from voice_agent.audio.ringback import ringback
from voice_agent.audio.wav import read_wav
from voice_agent.transfers import TransferTarget

LONGEST_S = 120
"""More of a file is not kept: it is repeated from the start."""


class HoldAudio:
    """Implements `voice_agent.call.transfer.HoldAudio`.

    Args:
        root: The project's folder; files are named from there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sounds: dict[str | None, bytes] = {}

    async def __call__(self, target: TransferTarget) -> bytes:
        """Return the sound of ``target``, canonical PCM.

        Raises:
            RemediableError: Its file is not there or no WAV.
        """
        name = target.hold_audio
        if name not in self._sounds:
            self._sounds[name] = await asyncio.to_thread(self._read, name)
        return self._sounds[name]

    def _read(self, name: str | None) -> bytes:
        if name is None:
            return ringback()
        pcm, rate = read_wav(self._root / name)
        return resample(pcm, rate, SAMPLE_RATE)[: LONGEST_S * SAMPLE_RATE * SAMPLE_BYTES]
