"""Is it "go on", or an answer? The same words are either, depending on what the agent is saying.

::

    agent   … and we are open from nine to five on weekdays and …     "yeah": go on
    agent   … shall I book that for you?                              "yeah", within the last 0.7 s: its answer
    agent   Are you still there?                                      "yeah", anywhere: its answer
"""

from __future__ import annotations

import math

from voice_agent.call.barge_in import Words, weigh
from voice_agent.call.vocabulary import ENGLISH, Vocabulary

NEARLY_OVER_S = 0.7
"""A backchannel this close to the end of a reply answers it."""


class Backchannels:
    """Judges the words of an utterance that was spoken while a turn existed."""

    def __init__(self, min_words: int, vocabulary: Vocabulary = ENGLISH) -> None:
        self._min_words, self._vocabulary = min_words, vocabulary

    def judge(self, text: str, *, checks_in: bool, remaining_s: float = math.inf) -> Words:
        """Return what the words mean for the turn.

        Args:
            checks_in: The agent asks whether anybody is there: any word is what it wants to hear.
            remaining_s: How much of the reply is still to be heard.
        """
        verdict = weigh(text, self._min_words, self._vocabulary)
        if checks_in and verdict is not Words.NONE:
            return Words.INTERRUPTION
        if verdict is Words.BACKCHANNEL and self.is_answer(remaining_s):
            return Words.INTERRUPTION
        return verdict

    @staticmethod
    def is_answer(remaining_s: float) -> bool:
        """Whether the reply is so nearly over that nothing is gained by going on with it."""
        return remaining_s <= NEARLY_OVER_S
