"""The same words are a backchannel or an answer, depending on what the agent is saying."""

from __future__ import annotations

import math

import pytest

from voice_agent.call.backchannel import NEARLY_OVER_S, Backchannels
from voice_agent.call.barge_in import Words


@pytest.mark.parametrize(
    ("text", "remaining_s", "checks_in", "verdict"),
    [
        ("yeah", math.inf, False, Words.BACKCHANNEL),
        ("mm-hm, okay", 3.0, False, Words.BACKCHANNEL),
        ("yeah", NEARLY_OVER_S, False, Words.INTERRUPTION),
        ("yeah", NEARLY_OVER_S + 0.01, False, Words.BACKCHANNEL),
        ("yeah", math.inf, True, Words.INTERRUPTION),
        ("Tuesday", math.inf, True, Words.INTERRUPTION),
        ("Tuesday", math.inf, False, Words.FEW),
        ("Tuesday", 0.1, False, Words.FEW),
        ("yeah, but I wanted", math.inf, False, Words.INTERRUPTION),
        ("stop", math.inf, False, Words.INTERRUPTION),
        ("", 0.1, False, Words.NONE),
        ("…", math.inf, True, Words.NONE),
    ],
)
def test_words_are_judged_by_what_they_are_spoken_into(
    text: str, remaining_s: float, checks_in: bool, verdict: Words
) -> None:
    assert Backchannels(2).judge(text, checks_in=checks_in, remaining_s=remaining_s) is verdict
