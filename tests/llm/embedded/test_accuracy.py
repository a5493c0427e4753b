"""The labelled caller lines, through the whole policy and the real encoder."""

from __future__ import annotations

import pytest

from tests.support.caller_lines import example_agent, load, northline_lines, outcome
from voice_agent.llm.embedded.minilm import MiniLm

pytestmark = pytest.mark.models

# Measured: 65 of 70 and 35 of 38. A change of thresholds that costs more than a line or two shows here.
LEAST = {"tuned": 0.91, "unseen": 0.89}


@pytest.mark.parametrize("part", ["tuned", "unseen"])
def test_most_lines_go_where_they_belong(encoder: MiniLm, part: str) -> None:
    agent, lines = load(part)
    wrong = [
        f"{line.text!r}: {got} instead of {line.label}"
        for line in lines
        if (got := outcome(agent, line.text, encoder.similarities)[0]) != line.label
    ]
    assert 1 - len(wrong) / len(lines) >= LEAST[part], "\n".join(wrong)


@pytest.mark.parametrize("part", ["tuned", "unseen"])
def test_no_line_out_of_scope_starts_a_skill_or_is_answered(encoder: MiniLm, part: str) -> None:
    agent, lines = load(part)
    for line in lines:
        if line.label == "out_of_scope":
            assert outcome(agent, line.text, encoder.similarities)[0] == "out_of_scope", line.text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("are you open on Sundays", "On Sundays and public holidays they are closed."),
        ("can I pay in cash", "Cash can be used in the shop only."),
        ("how do I listen to my voicemail", "dial 333"),
    ],
)
def test_a_question_of_fact_is_answered_with_the_texts_own_words(encoder: MiniLm, asked: str, said: str) -> None:
    agent, _ = load("tuned")
    assert said in outcome(agent, asked, encoder.similarities)[1].text


def test_nearly_all_lines_of_the_example_agents_callers_go_where_they_belong(encoder: MiniLm) -> None:
    agent = example_agent()
    wrong = [
        f"{line.text!r}: {got} instead of {line.label}"
        for line in northline_lines()
        if (got := outcome(agent, line.text, encoder.similarities)[0]) != line.label
    ]
    # Measured: 84 of 86; 72 before corrections, lost numbers and near misses were seen to.
    assert len(wrong) <= 3, "\n".join(wrong)
