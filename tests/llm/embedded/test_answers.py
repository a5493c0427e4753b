"""Answers out of reference texts: their own sentences."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.similarity import shared_words
from voice_agent.llm.embedded.answers import MAX_CHARS, MAX_SENTENCES, Passage, answer, read_passages, sentences


def test_the_nearest_sentence_is_given_back_not_the_page() -> None:
    page = "We love phones. The shop opens at nine. Dogs are welcome. Bring your bill."
    found = answer("when does the shop open", [Passage("", page), Passage("", "Nothing here.")], shared_words)
    assert found is not None
    assert found.text == "The shop opens at nine."


def test_a_title_gives_a_sentence_its_meaning() -> None:
    passages = [Passage("Delivery time", "Two days."), Passage("Returns", "Two weeks.")]
    found = answer("what is the delivery time", passages, shared_words)
    assert found is not None
    assert found.text == "Two days."


def test_neighbours_that_fit_as_well_are_said_in_their_order() -> None:
    page = "Hours on Monday are long. Hours on Sunday are short. The roof is red."
    found = answer("hours on", [Passage("", page)], shared_words)
    assert found is not None
    assert found.text == "Hours on Monday are long. Hours on Sunday are short."


def test_without_passages_there_is_no_answer() -> None:
    assert answer("anything", [], shared_words) is None
    assert answer("anything", [Passage("", "---")], shared_words) is None


@pytest.mark.parametrize(
    "result",
    [
        json.dumps({"passages": [{"title": "T", "text": "Hello there."}]}),
        json.dumps({"results": [{"content": "Hello there."}]}),
        json.dumps(["Hello there."]),
        json.dumps({"text": "Hello there."}),
        "Hello there.",
    ],
)
def test_passages_are_read_from_the_usual_shapes_of_a_result(result: str) -> None:
    assert [passage.text for passage in read_passages(result)] == ["Hello there."]


@pytest.mark.parametrize("result", ["", "{}", "[]", "null", '{"passages": null}', '{"passages": [{"score": 1}, 7]}'])
def test_a_result_without_passages_has_none(result: str) -> None:
    assert read_passages(result) == []


def test_markdown_is_cut_into_sentences_fit_to_be_said() -> None:
    lists = "# Hours\n\n- **Monday**: nine to five\n- Dr. Smith is in. Call e.g. at 10 a.m. or later.\n\n"
    text = lists + "| Day | Open |\n|---|---|\n| Friday | [ten](http://x) |"
    assert sentences(text) == [
        "Monday: nine to five.",
        "Dr. Smith is in.",
        "Call e.g. at 10 a.m. or later.",
        "Day: Open.",
        "Friday: ten.",
    ]


@given(st.text(max_size=400), st.text(max_size=60))
def test_an_answer_is_bounded_and_made_of_the_texts_own_sentences(text: str, asked: str) -> None:
    found = answer(asked, [Passage("t", text)], shared_words)
    if found is not None:
        own = sentences(text)
        longest = max(map(len, own))
        assert len(found.text) <= max(MAX_CHARS + MAX_SENTENCES, longest)
        assert any(found.text.startswith(sentence) for sentence in own)
