"""An answer out of reference texts: their own sentences that lie nearest to the question."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from voice_agent.llm.embedded.choice import Similarity

KNOWN = 0.63
"""A best sentence with less support than this does not answer the question.

On topic is not enough: "What colour is the router?" lies at 0.55 from how to restart it. Among the labelled lines what
is answered begins at 0.63, and what is not reaches 0.62."""
WORDS = 0.15
"""What it adds to a sentence's similarity when all words of the question stand in its passage."""
STRESS = 0.2
"""What it adds to a sentence's similarity when all words that matter most stand in it."""
SKILL_LEAD = 0.05
"""A skill that fits nearly as well as the best sentence goes first: it can ask, a sentence cannot. With a question of
what, when, where or how it is the other way round."""
NEAR = 0.75
"""A neighbour of the best sentence is said too if its own score is this share of the best one's own."""
MAX_SENTENCES = 3
MAX_CHARS = 320
MAX_PASSAGES = 8
MAX_SENTENCES_READ = 80

_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|No|e\.g|i\.e|a\.m|p\.m|approx|etc)\.$", re.IGNORECASE)
_FUNCTION_LINES = (
    "a an and any are as at be been by can could did do does for from get got had has have he her how i if in is "
    "it its long many me much my of on one or our please she should so some than that the their them there these they "
    "this those time to up us was we were what when where which who whom whose why will with would you your"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_LINES.split())
_TEXT_KEYS = ("text", "content", "passage", "snippet", "body")
_LIST_KEYS = ("passages", "results", "hits", "documents", "chunks", "matches")


@dataclass(frozen=True, slots=True)
class Passage:
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """``score`` is the similarity of the best sentence to the question; ``support`` also counts shared words."""

    text: str
    score: float
    support: float


def read_passages(result: str) -> list[Passage]:
    """Return the passages in the result of a search, whatever of the usual shapes it has."""
    try:
        data: Any = json.loads(result)
    except ValueError:
        data = result
    return [passage for passage in _passages(data, 0) if passage.text.strip()][:MAX_PASSAGES]


def _passages(data: Any, depth: int) -> Iterator[Passage]:
    if isinstance(data, str):
        yield Passage("", data)
    elif isinstance(data, list) and depth < 4:
        for item in data:
            yield from _passages(item, depth + 1)
    elif isinstance(data, dict) and depth < 4:
        text = next((data[key] for key in _TEXT_KEYS if isinstance(data.get(key), str)), None)
        if text is not None:
            title = data.get("title") or data.get("heading") or ""
            yield Passage(title if isinstance(title, str) else "", text)
        else:
            for key in _LIST_KEYS:
                yield from _passages(data.get(key), depth + 1)


def answer(question: str, passages: Sequence[Passage], similar: Similarity, *, stress: str = "") -> Answer | None:
    """Return at most three sentences in their order, around the one nearest to ``question``.

    A sentence is judged alone and together with the title it stands under, since "It is closed"
    means little without it. Neighbours are judged alone: under a fitting title every sentence
    looks fitting.

    Args:
        stress: The words of the question that matter most: the new ones of "and on Sunday?".
    """
    best: Answer | None = None
    asked, stressed = _stems(question), _stems(stress)
    budget = MAX_SENTENCES_READ
    for passage in passages:
        found = sentences(passage.text)[:budget]
        budget -= len(found)
        if not found:
            continue
        alone = similar(question, found)
        titled = similar(question, [_titled(passage, sentence) for sentence in found]) if passage.title else alone
        scores = [max(pair) for pair in zip(alone, titled, strict=True)]
        if stressed:
            hits = [len(stressed & _stems(sentence)) / len(stressed) for sentence in found]
            scores = [score + STRESS * hit for score, hit in zip(scores, hits, strict=True)]
        top = max(range(len(found)), key=scores.__getitem__)
        if best is None or scores[top] > best.score:
            shared = len(asked & _stems(f"{passage.title} {passage.text}")) / max(1, len(asked))
            best = Answer(_around(found, alone, top), scores[top], scores[top] + WORDS * shared)
    return best


def sentence_lines(passage: Passage) -> list[str]:
    """Return every text that a question is compared with: each sentence alone, and under its title."""
    found = sentences(passage.text)[:MAX_SENTENCES_READ]
    return [*found, *(_titled(passage, sentence) for sentence in found)] if passage.title else found


def _titled(passage: Passage, sentence: str) -> str:
    return f"{passage.title}: {sentence}"


def _stems(text: str) -> set[str]:
    """Return the content words of ``text``, cut to four letters, where "parking" and "park" still agree."""
    return {
        word[:4] for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 1 and word not in _FUNCTION_WORDS
    }


def _around(found: Sequence[str], scores: Sequence[float], top: int) -> str:
    first = last = top
    while last - first + 1 < MAX_SENTENCES:
        sides = [i for i in (first - 1, last + 1) if 0 <= i < len(found) and scores[i] >= NEAR * scores[top]]
        if not sides:
            break
        side = max(sides, key=scores.__getitem__)
        if sum(map(len, found[min(first, side) : max(last, side) + 1])) > MAX_CHARS:
            break
        first, last = min(first, side), max(last, side)
    return " ".join(found[first : last + 1])


def sentences(text: str) -> list[str]:
    """Cut markdown prose, lists and tables into sentences fit to be said."""
    found: list[str] = []
    paragraph: list[str] = []

    def flush() -> None:
        found.extend(_split(" ".join(paragraph)))
        paragraph.clear()

    for raw in text.splitlines():
        line = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", raw.strip())
        line = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line)
        if not line or re.fullmatch(r"[-=|:\s]+", line) or line.startswith("#"):
            flush()
        elif item := re.match(r"(?:[-+•]|\d+[.)])\s+(.*)", line):
            flush()
            paragraph.append(item[1])
        elif line.startswith("|"):
            flush()
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.append(_ended(": ".join(cell for cell in cells if cell)))
        else:
            paragraph.append(line)
    flush()
    return found


def _split(text: str) -> list[str]:
    found: list[str] = []
    for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])", text.strip()):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += f" {piece}"
        elif piece:
            found.append(piece)
    return [_ended(piece) for piece in found]


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence.rstrip(' ;,:')}."
