"""Reference texts are cut at headings and found by the words they share with a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice_agent.dialogue.knowledge import Passage, WordIndex, read_references
from voice_agent.recall.chunks import MAX_PASSAGE_CHARS, passages

TEXT = """# Opening hours

## Shops
Our shops are open from nine to six.

## Support
Call us until ten.

# Prices
Basic costs twenty dollars.
"""


def test_passages_carry_the_headings_above_them() -> None:
    assert [(p.title, p.text) for p in passages(TEXT, "a.md", "a")] == [
        ("Opening hours - Shops", "Our shops are open from nine to six."),
        ("Opening hours - Support", "Call us until ten."),
        ("Prices", "Basic costs twenty dollars."),
    ]


def test_a_text_without_headings_is_titled_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "house_rules.md").write_text("No smoking.")
    assert read_references(tmp_path, tmp_path, []) == [Passage("house rules", "No smoking.", "house_rules.md")]


def test_a_long_section_is_cut_at_blank_lines() -> None:
    text = "# A\n\n" + "\n\n".join(f"Paragraph {n} " + "word " * 60 for n in range(20))
    found = passages(text, "a.md", "a")
    assert len(found) > 1
    assert all(len(p.text) <= MAX_PASSAGE_CHARS for p in found)
    assert sum(p.text.count("Paragraph") for p in found) == 20


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("When do your shops open?", "Opening hours - Shops"),
        ("how late is support reachable", "Opening hours - Support"),
        ("What does the basic plan cost?", "Prices"),
        ("PRICES", "Prices"),
    ],
)
async def test_the_best_passage_comes_first(question: str, title: str) -> None:
    found = await WordIndex(passages(TEXT, "a.md", "a")).search(question)
    assert found[0].passage.title == title
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)


@pytest.mark.parametrize("question", ["", "the of and", "zebra", "(*&^%$"])
async def test_nothing_in_common_finds_nothing(question: str) -> None:
    assert await WordIndex(passages(TEXT, "a.md", "a")).search(question) == []


async def test_no_more_than_the_limit_is_returned_and_an_empty_index_is_fine() -> None:
    many = WordIndex([Passage(f"t{n}", "shared words") for n in range(9)])
    assert len(await many.search("shared", limit=2)) == 2
    assert (len(WordIndex([])), await WordIndex([]).search("x")) == (0, [])


async def test_a_paragraph_longer_than_a_passage_is_cut_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    text = " ".join(f"word{n}" for n in range(2000))
    (tmp_path / "long.md").write_text(f"{text}\n\n{'x' * 3000}")
    found = read_references(tmp_path, tmp_path, [])
    assert all(len(p.text) <= MAX_PASSAGE_CHARS for p in found)
    assert "".join(p.text for p in found).replace(" ", "").replace("\n", "") == text.replace(" ", "") + "x" * 3000
    (best, *_) = await WordIndex(found).search("word1500")
    assert "word1500" in best.passage.text


async def test_a_search_of_many_passages_looks_at_those_that_share_a_word() -> None:
    index = WordIndex([Passage(f"Topic {n}", f"item{n} costs euros") for n in range(10_000)])
    found = await index.search("what is the price of item77")
    assert [s.passage.title for s in found] == ["Topic 77"]
