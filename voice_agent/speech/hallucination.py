"""Tells speech from the phrases that Whisper invents on silence, noise and breath.

The model gives two numbers: how probable it holds that nobody spoke, and how sure it was of its
words. Neither alone tells them apart (breath may have 0.26 of the first, a clear "cancelled" −1.2
of the second), but a line through both does. The surer the model is that nobody spoke, the surer
it must be of the words::

      0.0 ┤ "thank you" (spoken)                     ╱
          │  "yes", "no", "stop"                 ╱        invented: "you" −0.6
     −0.5 ┤                                  ╱            "Thank you." −1.0
          │   one word, badly heard      ╱                "I'm not going to do it." −1.7
     −1.0 ┤  "cancelled" −1.2        ╱
     −1.3 ┼──────────────────────╱──────────────────
          0.0       no-speech probability        1.0

Measured with ``tiny.en`` and ``base`` at 8 kHz: of 129 studio prompts (69 of at most three words)
and 18 synthetic lines all are on the left ("thank you": 0.08 and −0.15 at worst), except "dot",
which ``tiny.en`` writes as dots; all 85 stretches of silence, white and pink noise, breath, hum,
clicks and hold music are on the right.
"""

from __future__ import annotations

from voice_agent.speech import repetition

LOWEST_LOG_PROBABILITY = -1.3
SLOPE = 1.3
SHORTEST_UTTERANCE_S = 0.2


def required_log_probability(no_speech_probability: float) -> float:
    """Return the average log-probability that words need in order to be believed."""
    return LOWEST_LOG_PROBABILITY + SLOPE * no_speech_probability


def is_credible(text: str, seconds: float, *, no_speech_probability: float, average_log_probability: float) -> bool:
    """Whether a caller really said ``text``.

    Args:
        seconds: Length of the audio it was heard in; shorter than 0.2 s, or too short for that many
            words, nobody said it.
    """
    if not repetition.words_of(text) or seconds < SHORTEST_UTTERANCE_S or repetition.is_too_fast(text, seconds):
        return False
    return average_log_probability >= required_log_probability(no_speech_probability)
