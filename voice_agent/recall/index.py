"""What an index of passages and vectors must do. It blocks: `memories` calls it from threads of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from voice_agent.recall.entries import Episode, Found, Kind, Passage, Source, Who

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Vector = NDArray[np.float32]

MAX_EPISODES_SEARCHED = 2_000
"""Of one caller, the newest."""


class IndexUnavailable(Exception):
    """The index could not do what was asked of it, now."""


class OtherModel(IndexUnavailable):
    """Another process has filled the index with vectors of another model."""


@dataclass(frozen=True, slots=True)
class Forget:
    """What is to be deleted: everything that matches each field that is given.

    Attributes:
        older_than: Seconds since 1970.
    """

    conversation: str | None = None
    caller: str | None = None
    older_than: float | None = None

    def __post_init__(self) -> None:
        if self.conversation is None and self.caller is None and self.older_than is None:
            raise ValueError("name a conversation, a caller or an age")

    def covers(self, episode: Episode) -> bool:
        """Whether an exchange is one of those."""
        return (
            self.conversation in (None, episode.who.conversation)
            and self.caller in (None, episode.who.caller)
            and (self.older_than is None or episode.moment < self.older_than)
        )


@dataclass(frozen=True, slots=True)
class Pending:
    """A passage that has no vector of the present model yet. ``key`` is the index's own."""

    key: str
    text: str


class Index(Protocol):
    """Keeps passages with their vectors. Each change is made whole or not at all, also when the process is killed."""

    searches_words: bool
    """Whether documents are found by their words too."""

    def open(self, identity: str) -> int:
        """Make ready for vectors of the model ``identity``. Returns how many passages wait for one (see `pending`).

        Raises:
            RemediableError: The place cannot be used; says why and what to do.
        """
        ...

    def replace(self, source: Source, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Put a text in the place of the one with its kind, owner and name, if there is any."""
        ...

    def remove(self, kind: Kind, owner: str, name: str) -> bool:
        """Delete a text. Returns whether there was one."""
        ...

    def sources(self, kind: Kind, owner: str | None = None) -> Sequence[Source]:
        """Return all texts of a kind, in order of their names."""
        ...

    def keep(self, episodes: Sequence[Episode], vectors: Vectors) -> None:
        """Keep what was said; a turn that is there already is replaced."""
        ...

    def search(
        self, vector: Vector, words: str, *, documents: bool, owners: Sequence[str], limit: int, threshold: float
    ) -> Sequence[Found]:
        """Return the nearest documents, and references of ``owners``, best first.

        Args:
            threshold: Least similarity of what is found by its vector alone.
        """
        ...

    def search_words(self, words: str, *, documents: bool, owners: Sequence[str], limit: int) -> Sequence[Found]:
        """Return what shares most words with the question; nothing where words are not searched."""
        ...

    def episodes(self, vector: Vector, who: Who, *, limit: int, threshold: float) -> Sequence[Found]:
        """Return what was said that is nearest, by this caller only; see `Kind.EPISODE`."""
        ...

    def conversations(self) -> Sequence[str]:
        """Return the conversations of which anything is kept."""
        ...

    def forget(self, what: Forget) -> int:
        """Delete episodes, for good. Returns how many."""
        ...

    def pending(self, limit: int) -> Sequence[Pending]:
        """Return passages without a vector of the present model."""
        ...

    def fill(self, pending: Sequence[Pending], vectors: Vectors) -> None:
        """Give them their vectors."""
        ...

    def close(self) -> None: ...
