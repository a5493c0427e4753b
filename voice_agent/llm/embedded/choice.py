"""Which of several described things an utterance asks for, by sentence similarity.

A candidate's score is 0.8 of its best line plus 0.2 of the mean of its lines (id, description,
examples): the best line finds, the mean keeps one chance likeness from deciding. Weights and
thresholds were set on the `tuned` part of the labelled caller lines in the tests and on the lines of
the example agent (there, lines out of scope reach 0.36, and lines in scope begin at 0.37); the
`unseen` part checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from voice_agent.llm.protocol import SkillCard

Similarity = Callable[[str, Sequence[str]], list[float]]
"""Cosine similarity of a sentence to each of several others."""

FITS = 0.365
"""A score below this is no match."""
SURE = 0.62
"""A skill with this score is started without looking whether a reference text answers better."""
SURE_OF_A_QUESTION = 0.8
"""The same for a question of what, when, where or how, which is more often one of fact."""
CLEAR, CLEAR_LEAD = 0.37, 0.1
"""What it takes to leave an open question for a skill: its score, and its lead over the next one."""
MARGIN = 0.02
"""Two candidates nearer than this are told apart by asking."""
BEST_WEIGHT = 0.8


@dataclass(frozen=True, slots=True)
class Candidate:
    id: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their scores, best first."""

    scores: tuple[tuple[float, str], ...] = ()

    @property
    def best(self) -> str | None:
        return self.scores[0][1] if self.scores else None

    @property
    def score(self) -> float:
        return self.scores[0][0] if self.scores else -1.0

    @property
    def rival(self) -> str | None:
        """The second best, if it is too near to tell apart."""
        if len(self.scores) < 2 or self.scores[0][0] - self.scores[1][0] >= MARGIN:
            return None
        return self.scores[1][1]

    @property
    def is_clear(self) -> bool:
        """Whether the best is worth leaving an open question for."""
        lead = self.score - self.scores[1][0] if len(self.scores) > 1 else 1.0
        return self.score >= CLEAR and lead >= CLEAR_LEAD


def as_words(identifier: str) -> str:
    """Return "balance enquiry" for ``balance_enquiry``, ``balanceEnquiry`` or ``mcp/x:balance-enquiry``."""
    name = identifier.rsplit(":", 1)[-1].rsplit("/", 1)[-1]
    spaced = "".join(f" {c}" if c.isupper() and not name.isupper() else c for c in name)
    return " ".join(spaced.replace("_", " ").replace("-", " ").lower().split())


def spoken_name(card: SkillCard) -> str:
    """Return what to call a skill inside a sentence: its name, or its id in words."""
    name = card.name.strip()
    if not name:
        return as_words(card.id)
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


def candidate(id: str, description: str, examples: Iterable[str] = ()) -> Candidate:
    return Candidate(id, tuple(line for line in (as_words(id), description, *examples) if line.strip()))


def rank(utterance: str, candidates: Sequence[Candidate], similar: Similarity) -> Ranked:
    """Return the candidates by how well they fit ``utterance``."""
    scored = []
    for one in candidates:
        values = similar(utterance, one.lines)
        score = BEST_WEIGHT * max(values) + (1 - BEST_WEIGHT) * sum(values) / len(values)
        scored.append((score, one.id))
    return Ranked(tuple(sorted(scored, reverse=True)))
