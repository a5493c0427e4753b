"""Cuts the caller's frames into utterances: onset, pause, resumption. Counts audio, reads no clock.

::

    voiced   ░░▇▇▇▇▇▇▇▇▇░░░░░░░░░▇▇▇▇▇▇▇░░░░░░░░░░░░
    signal      ONSET    PAUSE     RESUME   PAUSE
               └ two adjacent voiced frames └ pause_ms of silence

The end is not the segmenter's to decide: whoever decides it calls `close`.
"""

from __future__ import annotations

from enum import IntEnum

from voice_agent.audio.frames import FRAME_MS

ADJACENT_FRAMES = 2
"""Voiced frames in a row that count as voice. One alone is a click."""


class Signal(IntEnum):
    """What a frame changed."""

    NONE = 0
    ONSET = 1
    PAUSE = 2
    RESUME = 3


class Segmenter:
    """Follows one caller's voice, frame by frame.

    Attributes:
        open: An utterance has begun and was not closed.
        paused: At least ``pause_ms`` of silence since its last voice.
    """

    __slots__ = ("_earlier", "_pause_frames", "_run", "_silence", "_voice", "open", "paused")

    def __init__(self, pause_ms: int) -> None:
        self._pause_frames = max(1, pause_ms // FRAME_MS)
        self._run = self._voice = self._silence = self._earlier = 0
        self.open = self.paused = False

    @property
    def voice_ms(self) -> int:
        """Voice in this utterance so far, silences left out."""
        return self._voice * FRAME_MS

    @property
    def silence_ms(self) -> int:
        """Silence since the utterance's last voice."""
        return self._silence * FRAME_MS

    def push(self, voiced: bool, earlier_frames: int = 0) -> Signal:
        """Take the verdict on the next frame; ``earlier_frames``: see `Voicing`."""
        if not self.open:
            return self._wait_for_onset(voiced, earlier_frames)
        if not voiced:
            self._silence += 1 + (self._run if self._run < ADJACENT_FRAMES else 0)
            self._run = 0
            if self._silence >= self._pause_frames and not self.paused:
                self.paused = True
                return Signal.PAUSE
            return Signal.NONE
        self._run += 1
        if self._silence == 0:
            self._voice += 1
            return Signal.NONE
        if self._run < ADJACENT_FRAMES:
            return Signal.NONE
        self._voice += self._run
        self._silence = 0
        if self.paused:
            self.paused = False
            return Signal.RESUME
        return Signal.NONE

    def close(self) -> None:
        """The utterance is over; the next voice opens a new one."""
        self.open = self.paused = False
        self._run = self._voice = self._silence = self._earlier = 0

    def _wait_for_onset(self, voiced: bool, earlier_frames: int) -> Signal:
        if not voiced:
            self._run = self._earlier = 0
            return Signal.NONE
        self._run += 1
        self._earlier += earlier_frames
        if self._run < ADJACENT_FRAMES:
            return Signal.NONE
        self.open = True
        self._voice = self._run + self._earlier
        self._silence = 0
        return Signal.ONSET
