"""What is kept and found: passages, where they come from, and who may see them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    DOCUMENT = "document"
    """Learnt from a file or by HTTP; every conversation may see it."""
    REFERENCE = "reference"
    """A project's own ``references/``; seen where its owner (a skill, or the project) is at work."""
    EPISODE = "episode"
    """What was said; seen by the same caller only."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text under one heading.

    Attributes:
        title: The headings above it, outermost first, joined with " - ".
        source: Where it stands: a path, or the id it was learnt under.
    """

    title: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Who:
    """Whose memories are asked for.

    Attributes:
        caller: The application's ``user_id``; empty while nobody has said who the caller is.
        conversation: The conversation that asks.
    """

    caller: str
    conversation: str


@dataclass(frozen=True, slots=True)
class Episode:
    """One exchange of a conversation. ``moment``: seconds since 1970."""

    who: Who
    turn: str
    moment: float
    said: str
    answered: str

    @property
    def text(self) -> str:
        return f"Caller: {self.said}\nAgent: {self.answered}" if self.answered else f"Caller: {self.said}"


@dataclass(frozen=True, slots=True)
class Source:
    """A learnt text.

    Attributes:
        owner: A skill's id or empty, for references.
        name: Its path or id; unique within kind and owner.
        digest: Hash of its content, which tells whether it has changed.
        learnt_at: Seconds since 1970.
    """

    kind: Kind
    owner: str
    name: str
    digest: str
    learnt_at: float = 0.0
    passages: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Something recalled.

    Attributes:
        source: Path or id of a text; the conversation of an episode.
        score: Cosine of the angle to the question: −1 to 1; 0 where it was found by its words alone.
        moment: When it was said, for episodes; seconds since 1970.
        turn: The turn of an episode.
    """

    kind: Kind
    source: str
    title: str
    text: str
    score: float
    moment: float = 0.0
    turn: str = ""

    @property
    def passage(self) -> Passage:
        return Passage(self.title, self.text, self.source)
