"""Pieces end where a speaker would breathe, concatenate to the input, and do not depend on the deltas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.splitter import MAX_CHARS, SentenceSplitter, split

# Fragments that meet in model output; joined at random they make the hard cases.
FRAGMENTS = st.sampled_from(
    [
        *("Hello", "the", "No", "3.14", "$3.50", "1,000.50", "3,5", "Dr.", "Mr.", "a.m.", "e.g.", "i.e.", "U.S."),
        *("https://a.example/x?y=1.2", "me@mail.example.com", "Wait...", "really", "I", "It's", "5", "12", "1."),
        *(".", "...", "!", "?", "?!", ",", ";", ":", "-", "—", "–", "…", " ", " ", "  ", "\n", "\n\n", "\t"),
        *('"', "'", "(", ")", "[", "](", "`", "```", "| a | b |", "# ", "- ", "**", "*", "。", "ß", "é", "👍", "word"),
    ]
)
TEXTS = st.one_of(st.text(max_size=400), st.lists(FRAGMENTS, max_size=80).map("".join))


@given(TEXTS, st.booleans())
def test_pieces_concatenate_to_the_input(text: str, first_clause: bool) -> None:
    assert "".join(split(text, first_clause)) == text


@given(TEXTS, st.booleans(), st.data())
def test_pieces_do_not_depend_on_how_the_text_was_cut_into_deltas(
    text: str, first_clause: bool, data: st.DataObject
) -> None:
    splitter, at, pieces = SentenceSplitter(first_clause), 0, []
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        pieces += splitter.push(text[at : at + size])
        at += size
    assert pieces + splitter.flush() == split(text, first_clause)


@given(st.lists(st.sampled_from(["word", "a", "some", "12", "of,", "it;", "3.5", "-", "e.g."]), max_size=300))
def test_a_piece_of_running_text_is_bounded_and_never_breaks_a_word(words: list[str]) -> None:
    pieces = split(" ".join(words))
    assert all(len(piece) <= MAX_CHARS + 20 for piece in pieces)
    assert [word for piece in pieces for word in piece.split()] == words


@given(st.text(alphabet=" \n\t", max_size=200))
def test_white_space_alone_is_held_within_bounds(text: str) -> None:
    assert "".join(split(text)) == text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello there. How are you?", ["Hello there. ", "How are you?"]),
        ("Yes! No? Maybe.", ["Yes! ", "No? ", "Maybe."]),
        ("He said “Go now.” She went.", ["He said “Go now.” ", "She went."]),
        ('"Really?" he asked. Yes.', ['"Really?" he asked. ', "Yes."]),
        ("all in lower case. even so it splits.", ["all in lower case. ", "even so it splits."]),
        ("One paragraph\n\nAnother", ["One paragraph\n\n", "Another"]),
        ("A line\nthat was wrapped softly.", ["A line\nthat was wrapped softly."]),
        ("Options:\n- one\n- two\nBye", ["Options:\n", "- one\n", "- two\n", "Bye"]),
        ("1. Unplug it.\n2. Wait.", ["1. Unplug it.\n", "2. Wait."]),
        ("今日は。元気ですか？はい", ["今日は。", "元気ですか？", "はい"]),
        ("No. I cannot. See No. 5 there.", ["No. ", "I cannot. ", "See No. 5 there."]),
        ("We open at 9 a.m. The shop is small.", ["We open at 9 a.m. ", "The shop is small."]),
        ("It is in the U.S. The end.", ["It is in the U.S. ", "The end."]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, pieces: list[str]) -> None:
    assert split(text) == pieces


def test_the_first_piece_may_be_a_clause_and_later_ones_are_sentences() -> None:
    text = "Sure, I can look that up, one moment. First, I need your number, please."
    assert split(text, True) == [
        "Sure, ",
        "I can look that up, one moment. ",
        "First, I need your number, please.",
    ]
    assert split(text, False)[0] == "Sure, I can look that up, one moment. "
    assert split("No, that is not so, I fear. Why?", True) == ["No, that is not so, ", "I fear. ", "Why?"]


def test_a_piece_goes_out_as_soon_as_the_next_word_makes_its_end_certain() -> None:
    splitter = SentenceSplitter()
    assert splitter.push("That is done.") == []
    assert splitter.push(" Any") == []
    assert splitter.push("thing ") == ["That is done. "]
    assert splitter.push("else?") == []
    assert splitter.flush() == ["Anything else?"]


def test_a_long_sentence_breaks_at_a_clause_and_without_one_between_words() -> None:
    clauses = "and then we go on to say a little more about it, " * 8
    assert all(piece.endswith(", ") and len(piece) <= MAX_CHARS for piece in split(clauses)[:-1])
    words = "word " * 200
    assert all(piece.endswith(" ") and len(piece) <= MAX_CHARS for piece in split(words))


def test_a_code_block_is_one_piece_however_long_it_is_below_the_bound() -> None:
    block = "```python\nprint('Hi. There.')\n" + "x = 1. Done\n" * 100 + "```\n"
    pieces = split("Try this. " + block + "That is all. Bye.")
    assert pieces == ["Try this. ", block, "That is all. ", "Bye."]


def test_each_table_row_is_a_piece() -> None:
    assert split("Prices:\n| plan | price. net |\n|---|---|\n| S | 1. A |\nBye.") == [
        "Prices:\n",
        "| plan | price. net |\n",
        "|---|---|\n",
        "| S | 1. A |\n",
        "Bye.",
    ]


def test_a_link_is_never_cut() -> None:
    link = "[the help page. And more](https://help.example/a. b)"
    assert split(f"See {link}. Bye.") == [f"See {link}. ", "Bye."]


def test_an_endless_word_is_cut_in_the_end() -> None:
    assert max(map(len, split("x" * 50_000))) <= 2000


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r\n "])
def test_white_space_without_end_is_not_waited_for(space: str) -> None:
    splitter = SentenceSplitter()
    held = sum(map(len, splitter.push("Well" + space * 3000)))
    assert len("Well" + space * 3000) - held <= MAX_CHARS + 12
    assert max(map(len, split(space * 3000))) <= MAX_CHARS + 12


def test_nonsensical_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="first_min_chars"):
        SentenceSplitter(first_min_chars=300, max_chars=200)
