"""Courtesies are told from requests."""

from __future__ import annotations

import pytest

from voice_agent.llm.embedded.small_talk import SmallTalk, small_talk, without_courtesy


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Hello", SmallTalk.GREETING),
        ("Hi. Hi.", SmallTalk.GREETING),
        ("Hello? Hello?", SmallTalk.GREETING),
        ("Hello, hello, are you there?", SmallTalk.GREETING),
        ("good morning, how are you?", SmallTalk.HOW_ARE_YOU),
        ("okay, thank you", SmallTalk.THANKS),
        ("Thank you, goodbye!", SmallTalk.GOODBYE),
        ("no thank you bye", SmallTalk.GOODBYE),
        ("no thanks, that's all", SmallTalk.NOTHING_MORE),
        ("no", SmallTalk.NOTHING_MORE),
        ("pardon?", SmallTalk.REPEAT),
        ("could you say that again please", SmallTalk.REPEAT),
        ("never mind", SmallTalk.CANCEL),
        ("what can you do", SmallTalk.ABILITIES),
        ("okay", SmallTalk.ASSENT),
    ],
)
def test_courtesies(said: str, kind: SmallTalk) -> None:
    assert small_talk(said) is kind


@pytest.mark.parametrize(
    "said", ["hello, my internet is down", "cancel my contract", "thanks but where is your shop", "stop roaming", ""]
)
def test_what_asks_for_something_is_none(said: str) -> None:
    assert small_talk(said) is None


def test_a_request_is_freed_of_the_courtesies_around_it() -> None:
    assert without_courtesy("Hello, good morning! Can I pay my bill, please?") == "Can I pay my bill"
    assert without_courtesy("thanks") == ""
