"""Voice detection in two stages: WebRTC and an energy gate open the door, Silero decides.

Every 20 ms frame passes the energy gate and WebRTC's detector (a few microseconds each). Silero runs
only where both fire, and only to confirm::

    caller    ………[ h e l l o   t h e r e ]………………………
    fires     ....######################..........      gate and WebRTC
    Silero    ......^  ^   ^   ^   ^   ^                third frame, FIRST_VERIFY_FRAMES, VERIFY_FRAMES …
    voiced    ......####################..........      the first says that 2 earlier frames were speech

A stretch of speech starts with `ONSET_FRAMES` firing frames in a row that Silero agrees with; a
refused onset is asked again on each of the next frames, then less often (music may go on for minutes).
It ends with `GAP_FRAMES` frames that do not fire, or with Silero finding no speech any more.
"""

from __future__ import annotations

import webrtcvad

from voice_agent.audio.frames import FRAME_BYTES, SAMPLE_RATE
from voice_agent.audio.level import dbfs
from voice_agent.config import VadOptions
from voice_agent.speech.energy_gate import EnergyGate
from voice_agent.speech.protocols import VoiceDetector, Voicing
from voice_agent.speech.silero import SileroModel, SileroStream

WEBRTC_MODE = 2
"""0 lets most through, 3 least. 2 missed no onset of 240 and fires on 0.2 % of white noise."""
SETTLING_FRAMES = 5
"""First frames of a stream, which WebRTC calls speech whatever they are (4 or 5 of white noise at any level)."""
ONSET_FRAMES = 3
"""Firing frames in a row that start speech (60 ms): a click is shorter."""
GAP_FRAMES = 3
"""Frames without firing after which speech must be confirmed anew: a click in a pause prolongs nothing."""
SURE_PROBABILITY = 0.6
"""Silero's probability now that confirms an onset at once. The attack of a note may look like a vowel's."""
LIKELY_PROBABILITY = 0.4
"""Silero's probability that confirms an onset when it was reached on the frame asked before, too."""
MOST_EARLIER_FRAMES = 5
"""An onset that was confirmed late is dated back at most this far (100 ms)."""
STILL_PROBABILITY = 0.6
"""Silero's mean probability since it was last asked that lets speech go on."""
FIRST_VERIFY_FRAMES = 3
"""A new stretch is verified after this many frames (60 ms): a note that sounded like a vowel is let go."""
VERIFY_FRAMES = 4
"""Later it is verified this often (80 ms): noise that begins under speech is let go then."""
EAGER_FRAMES = 12
"""Frames of firing during which a refused onset is asked again on every frame."""
PATIENT_FRAMES = 4
"""After that it is asked again this often (80 ms)."""


class WebRtcDetector:
    """WebRTC's detector behind an energy gate. Fooled by music and hum; costs microseconds."""

    def __init__(self, mode: int = WEBRTC_MODE) -> None:
        self._mode = mode
        self.reset()

    def reset(self) -> None:
        """Forget the stream so far."""
        self._webrtc = webrtcvad.Vad(self._mode)
        self._gate = EnergyGate()
        self._speaking = False
        self._run = self._gap = 0
        self._until_verify = 0
        self._settling = SETTLING_FRAMES

    def push(self, frame: bytes) -> Voicing:
        """Judge the next 20 ms frame.

        A frame of another length is no error: a short one is padded with zeros, a long one cut.
        Re-framing is the caller's part, but a stray frame must not end a call.
        """
        if len(frame) != FRAME_BYTES:
            frame = frame[:FRAME_BYTES].ljust(FRAME_BYTES, b"\0")
        level = dbfs(frame)
        # WebRTC adapts to what it is fed, so it gets every frame, open gate or not.
        fires = self._webrtc.is_speech(frame, SAMPLE_RATE)
        fires = self._gate.is_open(level, self._speaking) and fires
        if self._settling:
            self._settling -= 1
            fires = False
        self._take(frame, fires)
        if self._speaking:
            return Voicing(self._goes_on(fires), level)
        self._run = self._run + 1 if fires else 0
        if not self._is_due() or not self._confirms_onset():
            return Voicing(False, level)
        self._speaking, self._gap, self._until_verify = True, 0, FIRST_VERIFY_FRAMES
        return Voicing(True, level, earlier_frames=min(self._run - 1, MOST_EARLIER_FRAMES))

    def _is_due(self) -> bool:
        if self._run <= EAGER_FRAMES:
            return self._run >= ONSET_FRAMES
        return self._run % PATIENT_FRAMES == 0

    def _goes_on(self, fires: bool) -> bool:
        self._until_verify -= 1
        if fires and self._until_verify <= 0:
            self._until_verify = VERIFY_FRAMES
            if not self._confirms_speech():
                self._stop()
                return False
        self._gap = 0 if fires else self._gap + 1
        if self._gap >= GAP_FRAMES:
            self._stop()
        return fires

    def _stop(self) -> None:
        self._speaking = False
        self._run = 0

    def _take(self, frame: bytes, fires: bool) -> None:
        """Give the frame to the second stage."""

    def _confirms_onset(self) -> bool:
        return True

    def _confirms_speech(self) -> bool:
        return True


class TwoStageDetector(WebRtcDetector):
    """The whole detector: noise, hum, clicks, tones, breath and music are refused by Silero."""

    def __init__(self, model: SileroModel, mode: int = WEBRTC_MODE) -> None:
        self._model = model
        super().__init__(mode)

    def reset(self) -> None:
        """Forget the stream so far."""
        self._stream = SileroStream(self._model)
        self._was_likely = False
        super().reset()

    def _take(self, frame: bytes, fires: bool) -> None:
        self._stream.remember(frame)
        # The first firing frames are used to lead the model through the history.
        if fires and self._run < ONSET_FRAMES and not self._speaking:
            self._stream.read()

    def _confirms_onset(self) -> bool:
        self._stream.read()
        if not self._stream.is_caught_up:
            return False
        probability = self._stream.probability_now()
        was_likely = self._was_likely and self._run > ONSET_FRAMES
        self._was_likely = probability > LIKELY_PROBABILITY
        return probability > SURE_PROBABILITY or (self._was_likely and was_likely)

    def _confirms_speech(self) -> bool:
        self._stream.read()
        return self._stream.mean_probability() > STILL_PROBABILITY


class DetectorFactory:
    """Makes one detector per call; the model behind them is loaded once."""

    def __init__(self, options: VadOptions) -> None:
        self._name = options.name
        self._model: SileroModel | None = None

    def load(self) -> None:
        """Load and warm the model. Blocking: run it off the loop, before the first call.

        Raises:
            RemediableError: The model is missing or not the one expected.
        """
        if self._name == "silero" and self._model is None:
            self._model = SileroModel.load()

    def __call__(self) -> VoiceDetector:
        """Return a detector for one stream, loading the model if `load` was not called."""
        if self._name == "webrtc":
            return WebRtcDetector()
        self.load()
        assert self._model is not None
        return TwoStageDetector(self._model)
