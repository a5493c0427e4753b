"""Files of a call: the stereo WAV (caller left, agent as heard right) as it goes, and the account at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voice_agent.audio.wav import WavWriter
from voice_agent.diagnostics import RemediableError

AUDIO_NAME, ACCOUNT_NAME, PICTURE_NAME = "call.wav", "call.json", "timeline.png"


class Recording:
    """A directory that one call is recorded into. Files of an earlier call there are replaced."""

    def __init__(self, directory: Path, rate: int) -> None:
        """Create the directory and begin the WAV.

        Raises:
            RemediableError: The directory cannot be made or written to.
        """
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for name in (ACCOUNT_NAME, PICTURE_NAME):
                (directory / name).unlink(missing_ok=True)
            self._wav = WavWriter(self.audio, rate, channels=2)
        except OSError as error:
            raise RemediableError(
                f"Cannot record into {directory}: {error.strerror}.", "Name a directory that this user may write to."
            ) from error
        self.problem = ""
        """Why the recording is shorter than the call; empty when it is whole."""

    @property
    def audio(self) -> Path:
        return self.directory / AUDIO_NAME

    @property
    def picture(self) -> Path:
        return self.directory / PICTURE_NAME

    @property
    def account(self) -> Path:
        return self.directory / ACCOUNT_NAME

    def add(self, caller: bytes, agent: bytes) -> None:
        """Append one frame of each side: PCM16 of equal length. A full disk ends the recording, not the call."""
        if self.problem:
            return
        try:
            self._wav.write(np.stack([np.frombuffer(side, "<i2") for side in (caller, agent)], axis=1).tobytes())
        except OSError as error:
            self.problem = f"{self.audio} is cut short after {self._wav.seconds:.1f} s: {error.strerror or error}."

    def close(self) -> None:
        """Finish the WAV. Idempotent, never raises."""
        try:
            self._wav.close()
        except OSError as error:
            self.problem = self.problem or f"{self.audio} is incomplete: {error.strerror or error}."

    def write_account(self, account: Mapping[str, Any]) -> None:
        """Write the call's account as JSON.

        Raises:
            RemediableError: It cannot be written.
        """
        try:
            self.account.write_text(json.dumps(account, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            message = f"Cannot write {self.account}: {error.strerror}."
            raise RemediableError(message, "Make room on the disk.") from error


class NoRecording:
    """Takes the frames of a call that is not recorded."""

    def add(self, caller: bytes, agent: bytes) -> None:
        """Forget one frame of each side."""

    def close(self) -> None:
        """Nothing to finish."""
