"""Is what is heard only the agent's own voice, come back? Judged from what was released and what comes in.

::

    released    ▇▇▇▇▁▇▇▇▇▇▁▁▇▇▇▇▇
    heard            ▂▂▂▂▁▂▂▂█████▁▂▂▂▂        ▂ as loud as the echo of it must be: no voice
                └────┤ delay  └───┤            █ louder than that: the caller
                  unknown, up to MAX_DELAY_S

The spectra of both, in eight bands, are laid beside each other at every possible delay. Where they rise and fall
together (a correlation of `COUPLED` or more, which a caller's words do not reach), the heard one is an echo, and the
ratio of both says how loud. From then on a frame is the caller's when enough of its energy exceeds the echo's.

Until a correlation is found nothing is held back: on headphones there is none, so nothing becomes slower.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import FRAME_MS, FRAME_SAMPLES, SAMPLE_RATE

MAX_DELAY_S = 0.64
"""Longest way from release to hearing that is looked for: a far end's buffer, its sound card, the room, and back."""
COUPLED = 0.66
"""Correlation that shows an echo. Those of -10 to -30 dB reach it in 0.2 to 3 s of speech, and 0.8 later; half a
minute of somebody else's speech without a pause reached 0.63."""
STEADY_FRAMES = 8
"""For so many frames (160 ms) the same delay must be found."""
LIKELY = 0.25
"""Correlation above which there may be an echo."""
UNDECIDED_FRAMES = 200
"""Agent audio (4 s) in which every echo that is loud enough to be heard as speech was found."""
MEMORY = 0.985
"""Share of the past that a frame leaves: the correlation is that of the last second or so."""
LEARN_EVERY = 5
"""Frames between two looks at the ratio of heard to released."""
TAIL_DB = 25.0
"""By how much the echo has fallen at the end of its tail."""
OTHER_SHARE = 0.5
"""Share of a frame's energy, in bands beyond the echo, from which on it is somebody else's."""
GONE_FRAMES = 75
"""Frames (1.5 s) of agent audio without the echo it should have, after which there is none any more."""

FRAME_S = FRAME_MS / 1000
_LAGS = round(MAX_DELAY_S / FRAME_S)
_EDGES_HZ = (200, 400, 600, 850, 1150, 1500, 2000, 2700, 3500)
"""Of what every wire carries, telephones included."""
_EDGES = [round(hz * FRAME_SAMPLES / SAMPLE_RATE) for hz in _EDGES_HZ]
_BANDS = len(_EDGES_HZ) - 1
_WINDOW = np.hanning(FRAME_SAMPLES)
_LOUDNESS = 0.15
"""Power to this power: quiet frames count as well, without letting noise decide."""
_FLOOR = 1e3
"""Added to a band's power, about -85 dBFS: digital silence has no logarithm."""
_HISTORY = 75
_SIZE = _LAGS + _HISTORY + 2
_JUMP = 10
"""Frames by which the arrival of audio may waver before its time is taken anew (200 ms)."""
_ACTIVE_DB = 30.0
"""A band counts as released while it is within this of its loudest recent frame."""
_GAIN_QUANTILE = 0.95
_NOISE_OVER_LOWEST = 3.0
"""Mean power of a steady noise, relative to the lowest frame of it."""

Bands = NDArray[np.float64]


class EchoGuard:
    """Follows one call. Costs nothing while the agent is silent; see `heard`.

    Args:
        margin_db: By how much a band must exceed the predicted echo to be somebody else's.
        tail_ms: How long echo goes on after the agent's last sound.
    """

    def __init__(self, margin_db: float, tail_ms: int) -> None:
        self._margin = 10 ** (margin_db / 10)
        self._decay = 10 ** (-TAIL_DB * FRAME_MS / max(FRAME_MS, tail_ms) / 10)
        self._tail_s = tail_ms / 1000
        self._pending: deque[tuple[int, bytes]] = deque(maxlen=_LAGS)
        self._until = float("-inf")
        self._slot: int | None = None
        self._sounding = np.zeros((_SIZE, _BANDS))
        self._shape = np.zeros((_SIZE, _BANDS))
        self._heard = np.zeros((_HISTORY, _BANDS))
        self._others = np.zeros(_HISTORY, np.bool_)
        self._noise = np.full(_BANDS, np.inf)
        self._mean_released, self._mean_heard = np.zeros(_BANDS), np.zeros(_BANDS)
        self._both, self._own = np.zeros(_LAGS), np.zeros(_LAGS)
        self._theirs = 0.0
        self._frames = self._steady = self._gone = 0
        self._candidate = 0
        self._now = self._known_at = 0.0
        self._gain: Bands | None = None
        self.delay_frames: int | None = None
        self.correlation = 0.0

    @property
    def delay_s(self) -> float:
        """How late the agent's voice comes back; 0 where it is not known to."""
        return 0.0 if self.delay_frames is None else self.delay_frames * FRAME_S

    def was_open_to_echo(self, instant: float) -> bool:
        """Whether a voice that began at ``instant`` may be an echo: not known by then, or likely and still not known.

        Of a voice that began later it is known that the echo does not explain it.
        """
        if self._gain is not None:
            return instant < self._known_at
        return self._frames < UNDECIDED_FRAMES and self.correlation > LIKELY

    @property
    def coupled(self) -> bool:
        """Whether the agent's voice is known to come back."""
        return self._gain is not None

    def played(self, frame: bytes, at: float) -> None:
        """The agent's next 20 ms frame sounds from ``at`` on, in seconds of the clock that `heard` is given."""
        self._pending.append((round(at / FRAME_S), frame))
        self._until = max(self._until, at + MAX_DELAY_S + self._tail_s)

    def heard(self, frame: bytes, now: float) -> bool:
        """Take the next 20 ms frame of the caller's side; return whether the echo explains all that is in it."""
        if now > self._until:
            return False
        self._now = now
        self._advance(now)
        power = _power(frame)
        self._heard[1:], self._others[1:] = self._heard[:-1], self._others[:-1]
        self._heard[0], self._others[0] = power, False
        self._noise = np.where(power < self._noise, power, self._noise * 1.01)
        self._correlate(power)
        if self._gain is None or self.delay_frames is None:
            return False
        echo = self._echo(self.delay_frames, 1)[0] * self._gain
        self._watch(power, echo)
        excess = power[power > self._margin * (echo + self._noise * _NOISE_OVER_LOWEST)].sum()
        self._others[0] = excess >= OTHER_SHARE * power.sum()
        return not self._others[0]

    def _advance(self, now: float) -> None:
        """One frame on in time; what was released until then takes its place."""
        slot, before = round(now / FRAME_S), self._slot
        if before is None or abs(slot - before - 1) > _JUMP:
            steps = _SIZE if before is None else min(_SIZE, max(1, slot - before))
        else:
            slot, steps = before + 1, 1
        self._slot = slot
        for ring in (self._sounding, self._shape):
            ring[steps:] = ring[: _SIZE - steps]
        self._sounding[:steps] = 0.0
        self._shape[:steps] = -self._mean_released
        oldest = steps - 1
        while self._pending and self._pending[0][0] <= slot:
            at, frame = self._pending.popleft()
            age = slot - at
            if age < _SIZE:
                oldest = max(oldest, age)
                power = self._sounding[age] = _power(frame)
                shape = (power + _FLOOR) ** _LOUDNESS
                self._mean_released += self._pace() * (shape - self._mean_released)
                self._shape[age] = shape - self._mean_released
        for age in range(min(oldest, _SIZE - 2), -1, -1):
            np.maximum(self._sounding[age], self._sounding[age + 1] * self._decay, out=self._sounding[age])

    def _pace(self) -> float:
        return max(0.02, 1 / (self._frames + 1))

    def _correlate(self, power: Bands) -> None:
        shape = (power + _FLOOR) ** _LOUDNESS
        self._mean_heard += self._pace() * (shape - self._mean_heard)
        self._frames += 1
        theirs, own = shape - self._mean_heard, self._shape[:_LAGS]
        self._both = MEMORY * self._both + own @ theirs
        self._own = MEMORY * self._own + np.einsum("ij,ij->i", own, own)
        self._theirs = MEMORY * self._theirs + float(theirs @ theirs)
        correlation = self._both / np.sqrt(self._own * self._theirs + 1e-9)
        best = int(correlation.argmax())
        self.correlation = float(correlation[best])
        self._steady = self._steady + 1 if abs(best - self._candidate) <= 1 else 0
        self._candidate = best
        if self.correlation >= COUPLED and self._steady >= STEADY_FRAMES and self._frames % LEARN_EVERY == 0:
            self._learn(best)

    def _learn(self, delay: int) -> None:
        """Lay what was heard over what was released, and take the ratio that most frames stay below."""
        released = self._echo(delay, _HISTORY)
        active = released > np.maximum(released.max(axis=0) / 10 ** (_ACTIVE_DB / 10), _FLOOR)
        if self._others.sum() < _HISTORY / 2:
            # The caller's own voice teaches nothing. Where all seems to be it, the echo has become louder.
            active &= ~self._others[:, None]
        counts = active.sum(axis=0)
        if counts.max() < STEADY_FRAMES:
            return
        louder = np.maximum(self._heard - self._noise * _NOISE_OVER_LOWEST, 0.0)
        ratio = np.sort(np.where(active, louder / np.maximum(released, 1.0), np.inf), axis=0)
        at = np.clip((counts * _GAIN_QUANTILE).astype(np.intp), 0, np.maximum(counts - 1, 0))
        gain = np.where(counts > 0, ratio[at, np.arange(_BANDS)], 0.0)
        if self._gain is None:
            self._known_at = self._now
        self._gain, self.delay_frames, self._gone = gain, delay, 0

    def _echo(self, delay: int, count: int) -> Bands:
        """Return what sounds of the released audio, tail included, for the last ``count`` frames, newest first."""
        # One frame early or late counts as in time: frames of both sides do not begin together.
        early, late = max(0, delay - 1), delay + 1
        found = np.maximum(self._sounding[early : early + count], self._sounding[delay : delay + count])
        return np.maximum(found, self._sounding[late : late + count])

    def _watch(self, power: Bands, echo: Bands) -> None:
        """An echo that does not come where it must is gone: the caller has put on headphones."""
        if echo.sum() > 10 * self._noise.sum():
            self._gone = self._gone + 1 if power.sum() * 10 < echo.sum() else max(0, self._gone - 2)
            if self._gone >= GONE_FRAMES:
                self._gain, self.delay_frames, self._gone = None, None, 0


def _power(frame: bytes) -> Bands:
    samples: NDArray[Any] = np.frombuffer(frame, np.int16)
    if len(samples) != FRAME_SAMPLES:
        samples = np.resize(samples, FRAME_SAMPLES) if len(samples) else np.zeros(FRAME_SAMPLES)
    spectrum = np.fft.rfft((samples - samples.mean()) * _WINDOW)
    power: Bands = np.add.reduceat(spectrum.real**2 + spectrum.imag**2, _EDGES[:-1])
    return power
