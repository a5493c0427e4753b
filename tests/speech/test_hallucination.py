from __future__ import annotations

import pytest

from voice_agent.speech.hallucination import is_credible, required_log_probability


@pytest.mark.parametrize(
    ("text", "seconds", "no_speech", "log_probability"),
    [
        ("Thank you.", 1.2, 0.08, -0.15),
        ("Stop.", 1.1, 0.2, -0.44),
        ("cancelled", 1.0, 0.02, -1.16),
        ("10th", 0.6, 0.32, -0.72),
    ],
)
def test_real_words_pass_even_when_badly_heard(
    text: str, seconds: float, no_speech: float, log_probability: float
) -> None:
    assert is_credible(text, seconds, no_speech_probability=no_speech, average_log_probability=log_probability)


@pytest.mark.parametrize(
    ("text", "seconds", "no_speech", "log_probability"),
    [
        ("you", 0.8, 0.92, -0.54),
        ("Thank you.", 0.4, 0.75, -0.79),
        ("Ah!", 0.8, 0.26, -1.02),
        ("I'm not going to do it.", 3.0, 0.92, -1.77),
        (". . . . .", 6.0, 0.94, -0.12),
        ("", 1.0, 0.0, 0.0),
        ("Yes.", 0.1, 0.01, -0.1),
        ("I'm going to put the oil in the pan", 0.4, 0.1, -0.2),
    ],
)
def test_invented_words_do_not_pass(text: str, seconds: float, no_speech: float, log_probability: float) -> None:
    assert not is_credible(text, seconds, no_speech_probability=no_speech, average_log_probability=log_probability)


def test_the_surer_that_nobody_spoke_the_surer_the_words_must_be() -> None:
    required = [required_log_probability(step / 10) for step in range(11)]
    assert required == sorted(required)
    assert required[-1] == pytest.approx(0.0)
