"""Samples go to the word that sounds in them, also where the engine runs words together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.speech.alignment import Phoneme, display_spans, shift_spans, spans_by_characters, word_ranges
from voice_agent.speech.protocols import TextSpan
from voice_agent.speech.speakable import speakable


def phonemes_of(symbols: str, samples: int = 10) -> list[Phoneme]:
    return [Phoneme("^", 5), *(Phoneme(symbol, samples) for symbol in symbols), Phoneme("$", 5)]


ALONE = {
    "of": "ˈʌv", "the": "ðə", "in": "ɪn", "house": "hˈaʊs", "a": "ˈeɪ", "dog": "dˈɑːɡ", "no": "nˈoʊ", "U-S": "jˈuːˈɛs",
    "hello": "həlˈoʊ", "it": "ɪt", "is": "ɪz", "to": "tˈuː", "be": "bˈiː", "-": "", "at": "ˈæt", "all": "ˈɔːl",
}  # fmt: skip


def ranges_of(spoken: str, symbols: str) -> list[str]:
    """Return the phonemes each word got."""
    phonemes = phonemes_of(symbols)
    ranges = word_ranges(spoken, phonemes, lambda word: ALONE[word.strip(".,")])
    assert ranges is not None
    return [symbols[(first - 5 + 9) // 10 : (last - 5) // 10] if last > first else "" for first, last in ranges]


@pytest.mark.parametrize(
    ("spoken", "symbols", "words"),
    [
        ("hello house", "həlˈoʊ hˈaʊs", ["həlˈoʊ", "hˈaʊs"]),
        ("in the house.", "ɪnðə hˈaʊs.", ["ɪn", "ðə", "hˈaʊs"]),
        ("of the house", "ʌvðə hˈaʊs", ["ʌv", "ðə", "hˈaʊs"]),
        ("it is to be in the house", "ɪɾ ɪz təbiʲ ɪnðə hˈaʊs", ["ɪɾ", "ɪz", "tə", "biʲ", "ɪn", "ðə", "hˈaʊs"]),
        ("no, a dog", "nˈoʊ, ɐ dˈɑːɡ", ["nˈoʊ", "ɐ", "dˈɑːɡ"]),
        ("no - dog", "nˈoʊ dˈɑːɡ", ["nˈoʊ", "", "dˈɑːɡ"]),
        ("at all", "æɾˈɔːl", ["æɾ", "ˈɔːl"]),
        ("U-S dog", "jˈuː ˈɛs dˈɑːɡ", ["jˈuː ˈɛs", "dˈɑːɡ"]),
    ],
)
def test_each_word_gets_its_phonemes(spoken: str, symbols: str, words: list[str]) -> None:
    assert ranges_of(spoken, symbols) == words


def test_pauses_belong_to_no_word() -> None:
    phonemes = [Phoneme("^", 100), Phoneme("n", 10), Phoneme("o", 10), Phoneme(",", 300), Phoneme(" ", 50)]
    phonemes += [Phoneme("d", 10), Phoneme("ɑ", 10), Phoneme("ɡ", 10), Phoneme(".", 200), Phoneme("$", 90)]
    assert word_ranges("no, dog.", phonemes, lambda word: ALONE[word.strip(".,")]) == [(100, 120), (470, 500)]


@given(
    st.lists(st.sampled_from(sorted(ALONE)), min_size=1, max_size=25),
    st.lists(st.sampled_from([*"hɪðzəlˈːʊtdn ,.?"]), min_size=1, max_size=120),
    st.integers(0, 400),
)
def test_ranges_ascend_within_the_audio_whatever_the_engine_says(
    words: list[str], symbols: list[str], samples: int
) -> None:
    phonemes = phonemes_of("".join(symbols), samples)
    ranges = word_ranges(" ".join(words), phonemes, ALONE.__getitem__)
    if ranges is None:
        return
    assert len(ranges) == len(words)
    flat = [edge for pair in ranges for edge in pair]
    assert flat == sorted(flat)
    assert flat[0] >= 0
    assert flat[-1] <= sum(phoneme.samples for phoneme in phonemes)


def test_a_written_word_spans_all_that_is_said_for_it_and_an_unsaid_one_nothing() -> None:
    text = "Pay $42 😀 now"
    said = speakable(text)
    assert said.text == "Pay forty-two dollars now"
    spans = display_spans(said, [(0, 100), (110, 300), (310, 500), (600, 700)])
    assert spans == (
        TextSpan(0, 3, 0, 100),
        TextSpan(4, 7, 110, 500),
        TextSpan(8, 9, 500, 500),
        TextSpan(10, 13, 600, 700),
    )


def test_words_said_together_share_their_samples_by_length() -> None:
    said = speakable("USD 42")
    assert said.text == "forty-two dollars"
    assert display_spans(said, [(0, 300), (300, 500)]) == (TextSpan(0, 3, 0, 300), TextSpan(4, 6, 300, 500))


TEXTS = st.lists(
    st.sampled_from(
        ["Hello", "$42", "**bold**", "😀", "—", "March 3,", "2024", "a@b.co", "`x=1`", "555-123-4567", "5%"]
    )
).map(" ".join)


@given(TEXTS, st.integers(0, 1000), st.integers(0, 100_000))
def test_spans_by_characters_cover_each_word_in_order_within_the_sound(text: str, first: int, length: int) -> None:
    spans = spans_by_characters(speakable(text), first, first + length)
    assert [text[span.start : span.end] for span in spans] == text.split()
    edges = [edge for span in spans for edge in (span.first, span.last)]
    assert edges == sorted(edges)
    assert all(first <= edge <= first + length for edge in edges)


def test_shifting_moves_text_and_samples() -> None:
    assert shift_spans([TextSpan(0, 2, 5, 9)], 10, 100) == (TextSpan(10, 12, 105, 109),)
