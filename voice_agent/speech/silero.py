"""The Silero voice model, read in bursts: only while the cheap detector fires, with history.

Silero is recurrent: it reads 512 samples at a time, each chunk with the 64 samples before it, and
carries two state vectors. With no history it is fooled: from a blank state and 128 ms it calls 2 % of
DTMF and hold music speech, with all of the call 0.0-0.1 %. But reading all costs some 5 ms a second on
every silent call. So a stream keeps its last half second of frames, and reads on when it is asked::

    frames    …───────────────────────────────┤f│f│f│f│f│        f = the cheap detector fires
    read from            ├── WARM_UP_CHUNKS ──┤                  a few chunks a frame, until caught up
    verdict                                        ^             at the third firing frame

Where more than that was skipped, the state of long ago is led through the last half second: it still
knows what the line sounds like. On hold music this made 32 false frames of 55,000, a blank state 167.

Weights: Silero VAD v6 (MIT), as bundled by the package faster-whisper.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import FRAME_SAMPLES, SILENCE
from voice_agent.diagnostics import RemediableError

CHUNK_SAMPLES = 512
CONTEXT_SAMPLES = 64
WARM_UP_CHUNKS = 16
"""History that an old state is led through (512 ms)."""
CHUNKS_PER_READ = 6
"""At most this many chunks are read in one go (some 0.4 ms), to stay within a frame's budget."""
ONSET_LEAD_FRAMES = 2
"""Frames between the first request and the first verdict: chunks are laid so that one ends there."""

COMFORT_NOISE_DBFS = -55.0
"""Faint noise added to all the model reads. In digital silence it is slow to believe the first vowel:
one onset in ten came 130 ms late or more, with the noise 100 ms; and music fooled it less often."""

_WARM_UP_SAMPLES = WARM_UP_CHUNKS * CHUNK_SAMPLES - ONSET_LEAD_FRAMES * FRAME_SAMPLES
_HISTORY_FRAMES = -(-(WARM_UP_CHUNKS * CHUNK_SAMPLES + CONTEXT_SAMPLES + CHUNK_SAMPLES) // FRAME_SAMPLES)
_COMFORT_NOISE = (
    np.random.default_rng(0)
    .normal(0, 10 ** (COMFORT_NOISE_DBFS / 20), _HISTORY_FRAMES * FRAME_SAMPLES)
    .astype(np.float32)
)
# Audio that does not fill a chunk is worth a look of its own from here on (half a chunk).
_PEEK_SAMPLES = CHUNK_SAMPLES // 2

_ASSET = Path("assets") / "silero_vad_v6.onnx"
_SHA256 = "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2"
_REMEDY = 'Install it with: pip install "voice-agent[whisper]", or set speech.vad.name to webrtc in integrations.yml.'


State = tuple[NDArray[np.float32], NDArray[np.float32]]
BLANK: State = (np.zeros((1, 1, 128), np.float32), np.zeros((1, 1, 128), np.float32))


class SileroModel:
    """The loaded model. Holds no stream's state, so all calls share one."""

    def __init__(self, session: Any) -> None:
        self._session = session

    @classmethod
    def load(cls) -> SileroModel:
        """Load and warm the model. Blocks for some 20 ms, and longer while onnxruntime is first imported.

        Raises:
            RemediableError: Package or weights are missing, or the weights are not those expected.
        """
        path = _asset_path()
        weights = path.read_bytes()
        if hashlib.sha256(weights).hexdigest() != _SHA256:
            raise RemediableError(f"{path} is not the Silero model that was tested with this version.", _REMEDY)
        try:
            import onnxruntime
        except ImportError as error:
            raise RemediableError(
                "The package onnxruntime, which runs the Silero model, is missing.", _REMEDY
            ) from error
        options = onnxruntime.SessionOptions()
        # One run is a quarter of a millisecond: handing parts of it to threads costs more than it gains.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = cls(onnxruntime.InferenceSession(weights, sess_options=options, providers=["CPUExecutionProvider"]))
        for chunks in range(1, CHUNKS_PER_READ + 1):
            model.run(np.zeros(chunks * CHUNK_SAMPLES + CONTEXT_SAMPLES, np.float32), BLANK)
        return model

    def run(self, samples: NDArray[np.float32], state: State) -> tuple[NDArray[np.float32], State]:
        """Read consecutive chunks in one run.

        Args:
            samples: The `CONTEXT_SAMPLES` before the first chunk, then whole chunks; scale -1 … 1.
            state: The state after the chunk before, or `BLANK`.

        Returns:
            The probability of speech (0 … 1) in each chunk, and the state after the last.
        """
        chunks = np.lib.stride_tricks.sliding_window_view(samples, CHUNK_SAMPLES + CONTEXT_SAMPLES)[::CHUNK_SAMPLES]
        inputs = {"input": np.ascontiguousarray(chunks), "h": state[0], "c": state[1]}
        probabilities, hidden, cell = self._session.run(None, inputs)
        return probabilities, (hidden, cell)


class SileroStream:
    """One caller's audio as Silero sees it. Keeps the last half second; one instance per call."""

    __slots__ = ("_frames", "_latest", "_model", "_state", "_unread")

    def __init__(self, model: SileroModel) -> None:
        self._model = model
        # Full of silence from the start, so that looking back needs no special case.
        self._frames = deque([SILENCE] * _HISTORY_FRAMES, maxlen=_HISTORY_FRAMES)
        self._unread = len(self._frames) * FRAME_SAMPLES
        self._state = BLANK
        self._latest: NDArray[np.float32] = np.zeros(1, np.float32)

    @property
    def is_caught_up(self) -> bool:
        """Less than one chunk is unread."""
        return self._unread < CHUNK_SAMPLES

    def remember(self, frame: bytes) -> None:
        """Take the next 20 ms frame without reading it (a fraction of a microsecond)."""
        self._frames.append(frame)
        self._unread += FRAME_SAMPLES

    def read(self) -> None:
        """Read on, at most `CHUNKS_PER_READ` chunks."""
        if self._unread >= WARM_UP_CHUNKS * CHUNK_SAMPLES + CHUNK_SAMPLES:
            # Skip what is too old, but keep the state: it still knows this line's music and tones.
            self._unread = _WARM_UP_SAMPLES
        chunks = min(self._unread // CHUNK_SAMPLES, CHUNKS_PER_READ)
        if chunks:
            samples = self._last(self._unread + CONTEXT_SAMPLES)[: chunks * CHUNK_SAMPLES + CONTEXT_SAMPLES]
            self._latest, self._state = self._model.run(samples, self._state)
            self._unread -= chunks * CHUNK_SAMPLES

    def probability_now(self) -> float:
        """Return the probability of speech in the last 512 samples. Call `read` first."""
        if self._unread < _PEEK_SAMPLES:
            return float(self._latest[-1])
        # The state belongs to an earlier chunk than the one looked at, and is left as it was.
        peeked, _ = self._model.run(self._last(CHUNK_SAMPLES + CONTEXT_SAMPLES), self._state)
        return float(peeked[-1])

    def mean_probability(self) -> float:
        """Return the mean probability over the chunks of the last `read`."""
        return float(self._latest.mean())

    def _last(self, count: int) -> NDArray[np.float32]:
        frames = -(-count // FRAME_SAMPLES)
        recent = b"".join(islice(self._frames, len(self._frames) - frames, None))
        samples = np.frombuffer(recent, np.int16)[-count:].astype(np.float32)
        samples /= 32768
        samples += _COMFORT_NOISE[:count]
        return samples


def _asset_path() -> Path:
    # Found without importing faster-whisper, which would load all of CTranslate2.
    spec = importlib.util.find_spec("faster_whisper")
    for directory in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(directory) / _ASSET).is_file():
            return path
    raise RemediableError("The Silero voice model is missing: it comes with the package faster-whisper.", _REMEDY)
