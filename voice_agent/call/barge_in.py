"""Does the caller want the floor? Stage one pauses on voice, stage two decides on words, stop words or duration.

::

    agent   ▇▇▇▇▇▇▇▇▁▁▁▁▁▁▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇      "mm-hm", "yeah": resumes as soon as that is known
    caller        ▒▒▒▒▒▒▒▒▒▒▒
                  └┤ onset_ms
                   └ PAUSE └ RESUME, listening goes on: a word of weight pauses or confirms later

    agent   ▇▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇▇      no words: resumes at the cut word
    caller        ▒▒▒▒▒▒▒▒▁▁▁▁▁▁▁▁▁▁▁
                   └ PAUSE            └ RESUME after false_interruption_ms of silence

    agent   ▇▇▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
    caller        ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
                   └ PAUSE      └ CONFIRM (two words, a stop word, or min_voice_ms)
"""

from __future__ import annotations

from enum import Enum, auto

from voice_agent.call.vocabulary import ENGLISH, Vocabulary, words
from voice_agent.config import TurnTaking

WORDS_PENDING_MS = 140
"""How much longer than `TurnTaking.min_voice_ms` voice may last while its words are being recognised."""
BACKCHANNEL_FACTOR = 3
"""Voice that is known to be a backchannel must last this much longer to take the floor."""
FRESH_MS = 400
"""Voice after the words that were judged, during which the judgement still holds."""
WEIGHTY = -1.0
"""Average log-probability below which the words of a partial have no weight. The first 140 ms of "who are you" come as
"Do it." at -1.3; those of "wait", "no", "right", "yeah" and "okay" as themselves at -0.4 to -0.9."""


class Decision(Enum):
    """What is to be done about a voice over the agent's."""

    WAIT = auto()
    PAUSE = auto()
    CONFIRM = auto()
    RESUME = auto()


class Words(Enum):
    """What the words of an utterance mean while a turn exists."""

    NONE = auto()
    BACKCHANNEL = auto()
    FEW = auto()
    """Fewer words than interrupt: answered after the reply."""
    INTERRUPTION = auto()


def weigh(text: str, min_words: int, vocabulary: Vocabulary = ENGLISH) -> Words:
    """Judge the words of one utterance that was spoken while a turn existed."""
    if not words(text):
        return Words.NONE
    content = vocabulary.content(text)
    if len(content) >= min_words or vocabulary.has_stop(text):
        return Words.INTERRUPTION
    return Words.FEW if content else Words.BACKCHANNEL


class BargeIn:
    """Decides on one utterance of the caller while agent audio is audible. Make a new one per utterance."""

    def __init__(self, options: TurnTaking, vocabulary: Vocabulary = ENGLISH) -> None:
        self._options = options
        self._vocabulary = vocabulary
        self._known: Words | None = None
        self._judged_ms = 0
        self._resumed = False

    def on_voice(self, voice_ms: int, *, words_pending: bool) -> Decision:
        """Judge the voice so far, in milliseconds; ``words_pending``: a recognition is under way."""
        limit = self._options.min_voice_ms
        if self._known is Words.BACKCHANNEL:
            limit *= BACKCHANNEL_FACTOR
        elif words_pending and self._known is None:
            limit += WORDS_PENDING_MS
        if voice_ms >= limit:
            return Decision.CONFIRM
        if self._resumed and voice_ms - self._judged_ms < FRESH_MS:
            return Decision.WAIT
        return Decision.PAUSE if voice_ms >= self._options.barge_in_onset_ms else Decision.WAIT

    def on_words(self, text: str, voice_ms: int = 0, *, certainty: float = 0.0) -> Decision:
        """Judge the words so far (a partial or the whole).

        Args:
            voice_ms: Voice in which they were heard.
            certainty: The recogniser's average log-probability; 0 is certain.
        """
        vocabulary = self._vocabulary
        if certainty < WEIGHTY and not vocabulary.has_stop(text) and not vocabulary.is_hummed(text):
            # Too little was heard to know: what was known before stands.
            return Decision.WAIT
        known = weigh(text, self._options.min_words, vocabulary)
        self._known, self._judged_ms = known, voice_ms
        self._resumed = known is Words.BACKCHANNEL
        if known is Words.INTERRUPTION:
            return Decision.CONFIRM
        return Decision.RESUME if self._resumed else Decision.WAIT

    def on_silence(self, silence_ms: int, *, words_pending: bool) -> Decision:
        """Judge the silence since the last voice. Words on their way are waited for, up to the longest endpoint."""
        limit = self._options.false_interruption_ms
        if words_pending:
            limit = max(limit, self._options.max_endpoint_ms)
        return Decision.RESUME if silence_ms >= limit else Decision.WAIT
