"""An index and what makes vectors for it, used off the event loop: it never waits for a disk or a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from voice_agent.recall.embedding import Embedder
from voice_agent.recall.index import Index, IndexUnavailable
from voice_agent.recall.index_threads import IndexThreads

if TYPE_CHECKING:
    from voice_agent.recall.index import Vectors

T = TypeVar("T")


class Backend:
    """What recall is made on. Closed until `open`.

    Args:
        make_embedder: Makes what turns sentences into vectors, when it is needed.
    """

    def __init__(self, index: Index, make_embedder: Callable[[], Embedder]) -> None:
        self._index, self._make_embedder = index, make_embedder
        self._embedder: Embedder | None = None
        self._threads = IndexThreads()

    @property
    def is_open(self) -> bool:
        return self._embedder is not None

    @property
    def model(self) -> str:
        """Identity of the embedding model; empty while closed."""
        return "" if self._embedder is None else self._embedder.identity

    async def open(self) -> int:
        """Open the index. Returns how many passages have no vector of this model.

        Raises:
            RemediableError: The index or the embedding model cannot be used.
        """
        embedder = self._make_embedder()
        waiting = await self.write(lambda index: index.open(embedder.identity))
        self._embedder = embedder
        return waiting

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector of unit length for each text.

        Raises:
            EmbeddingFailed: The model cannot.
            IndexUnavailable: It is closed.
        """
        if self._embedder is None:
            raise IndexUnavailable("recall is not open")
        return await self._embedder.embed(texts)

    async def read(self, work: Callable[[Index], T]) -> T:
        """Do ``work`` on the thread that reads.

        Raises:
            IndexUnavailable: It cannot be done now.
        """
        return await self._threads.read(lambda: work(self._index))

    async def write(self, work: Callable[[Index], T]) -> T:
        """Do ``work`` on the thread that writes; see `read`."""
        return await self._threads.write(lambda: work(self._index))

    async def aclose(self) -> None:
        """Close the index and let the threads end. Idempotent.

        Raises:
            IndexUnavailable: The index could not be closed in order.
        """
        embedder, self._embedder = self._embedder, None
        try:
            if embedder is not None:
                await embedder.aclose()
                await self.write(lambda index: index.close())
        finally:
            self._threads.close()
