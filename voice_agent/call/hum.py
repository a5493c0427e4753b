"""Is this a hum? "Mm-hm" has no words for a recogniser to find, so it invents some ("And then make them").

With closed lips hardly anything sounds above the first formant at about 250 Hz; open vowels have theirs between 400 and
900 Hz. Measured over the frames that carry the voice: energy above 450 Hz, and above 600 Hz, beside what lies below::

    above 450 Hz   −9 … +2 dB "mm-hm", "mhm", "hmm", "mmm"      +4 … +15 dB "yeah", "right", "stop", "how"
    above 600 Hz  −13 … −2 dB                                    −5 … +12 dB

A word that begins with "m", "n", "w" or "t" may look the same for its first quarter of a second ("meaning", "when"). So
this alone decides nothing: the recogniser must be unsure of its words as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voice_agent.audio.frames import FRAME_SAMPLES, SAMPLE_RATE
from voice_agent.call.vocabulary import ENGLISH, Vocabulary
from voice_agent.speech.protocols import Transcript

HUM = "Mm-hm."
"""What stands in a transcript for a hum."""
UNSURE = -0.55
"""Average log-probability below which words may be an invention: "mm-hm" comes as "And then" at -0.6 to -1.3."""
STILL_UNSURE = -0.4
"""The same for an utterance that has been a hum so far."""
LOWEST_HZ, HIGHEST_HZ = 80, 4000
LIPS_CLOSED = ((450, 2.0), (600, -2.5))
"""(frequency, most energy above it in dB relative to the energy below)."""
CARRIES_VOICE = 0.05
"""Frames with less than this share of the loudest frame's energy are left out."""
LEAST_LEVEL = 30.0
"""Root mean square of the loudest frame, below which there is nothing to judge (-61 dBFS)."""
LONGEST_S = 2.0
"""Nobody hums agreement for longer; more is not looked at."""
_WINDOW = 2 * FRAME_SAMPLES


def words_or_hum(
    transcript: Transcript, pcm: NDArray[np.int16], *, so_far: str = "", vocabulary: Vocabulary = ENGLISH
) -> str:
    """Return the words of an utterance over the agent, or `HUM` for those that were made out of a hum.

    A stop word is never taken for one: "no" is half a hum.

    Args:
        so_far: What the utterance has been taken for before.
    """
    text = transcript.text.strip()
    sure = STILL_UNSURE if so_far == HUM else UNSURE
    doubtful = not transcript.accepted or transcript.average_log_probability < sure
    if text and doubtful and not vocabulary.has_stop(text) and is_hum(pcm):
        return HUM
    # Recognisers are as unsure of "uh-huh" as of what they invent.
    return text if transcript.accepted or vocabulary.is_hummed(text) else ""


def is_hum(pcm: NDArray[np.int16]) -> bool:
    """Whether the voice in ``pcm`` (16 kHz mono, shape (n,), silence around it is ignored) may come from closed lips.

    Takes about half a millisecond for a second of audio.
    """
    if not _WINDOW <= len(pcm) <= LONGEST_S * SAMPLE_RATE:
        return False
    frames = np.lib.stride_tricks.sliding_window_view(pcm.astype(np.float64), _WINDOW)[::FRAME_SAMPLES]
    frames = frames - frames.mean(axis=1, keepdims=True)
    if np.sqrt((frames**2).mean(axis=1).max()) < LEAST_LEVEL:
        return False
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW))) ** 2
    hz = np.fft.rfftfreq(_WINDOW, 1 / SAMPLE_RATE)
    power = power[:, (hz > LOWEST_HZ) & (hz < HIGHEST_HZ)]
    hz = hz[(hz > LOWEST_HZ) & (hz < HIGHEST_HZ)]
    energy = power.sum(axis=1)
    spectrum = power[energy >= CARRIES_VOICE * energy.max()].sum(axis=0)
    return all(_above_db(spectrum, hz, border) <= most for border, most in LIPS_CLOSED)


def _above_db(spectrum: NDArray[np.floating[Any]], hz: NDArray[np.floating[Any]], border: float) -> float:
    above, below = spectrum[hz >= border].sum(), spectrum[hz < border].sum()
    return float(10 * np.log10((above + 1e-9) / (below + 1e-9)))
