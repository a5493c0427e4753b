"""The texts that were learnt: documents, and the references of a project.

::

    learn ── embed ── embed ── embed ──▶ one transaction a text
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from voice_agent.recall.backend import Backend
from voice_agent.recall.chunks import embedded_text
from voice_agent.recall.documents import Document
from voice_agent.recall.entries import Kind, Source
from voice_agent.recall.references import differences

FILL_AT_ONCE = 32
"""Passages of one transaction while vectors of a new model are made."""
Progress = Callable[[int, int], None]


class Library:
    """Learns and unlearns, on a backend that `voice_agent.recall.memories.Memories` opens.

    Args:
        clock: The calendar, as seconds since 1970: what is learnt outlives processes.

    Attributes:
        documents: How many are learnt, as of the last look.
        waiting_for_vectors: Passages that were embedded by another model, when the index was opened.
    """

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        self._backend, self._clock = backend, clock
        self.documents = self.waiting_for_vectors = 0
        self._owners: frozenset[str] = frozenset()

    def has_references(self, owner: str) -> bool:
        """Return whether the references of ``owner`` are in the index as they are now."""
        return owner in self._owners

    async def look(self) -> None:
        """See what there is, other processes' included.

        Raises:
            IndexUnavailable: It cannot be seen now.
        """
        self.documents = len(await self._backend.read(lambda index: index.sources(Kind.DOCUMENT)))

    async def sources(self, kind: Kind = Kind.DOCUMENT, owner: str | None = None) -> Sequence[Source]:
        """Return what has been learnt.

        Raises:
            IndexUnavailable: It cannot be read now.
        """
        if not self._backend.is_open:
            return ()
        return await self._backend.read(lambda index: index.sources(kind, owner))

    async def learn(
        self, document: Document, *, kind: Kind = Kind.DOCUMENT, owner: str = "", progress: Progress | None = None
    ) -> Source:
        """Learn a document in the place of the one of that name.

        Raises:
            EmbeddingFailed, IndexUnavailable: Nothing has changed.
        """
        texts = [embedded_text(passage.title, passage.text) for passage in document.passages]
        parts = []
        for at in range(0, len(texts), FILL_AT_ONCE):
            parts.append(await self._backend.embed(texts[at : at + FILL_AT_ONCE]))
            if progress is not None:
                progress(min(at + FILL_AT_ONCE, len(texts)), len(texts))
        import numpy as np

        vectors = np.concatenate(parts)
        source = Source(kind, owner, document.name, document.digest, self._clock(), len(texts))
        await self._backend.write(lambda index: index.replace(source, document.passages, vectors))
        await self.look()
        return source

    async def learn_references(self, references: Mapping[str, Sequence[Document]]) -> int:
        """Bring the references of a project into the index, by their owner: a skill's id, or empty.

        Returns how many texts were new or had changed.

        Raises:
            EmbeddingFailed, IndexUnavailable: What was learnt up to then is kept.
        """
        changed, gone = differences(await self.sources(Kind.REFERENCE), references)
        self._owners -= {owner for owner, _ in (*changed, *gone)}
        for owner, name in gone:
            await self.unlearn(name, kind=Kind.REFERENCE, owner=owner)
        for (owner, _), text in changed.items():
            await self.learn(text, kind=Kind.REFERENCE, owner=owner)
        self._owners = frozenset(references)
        return len(changed)

    async def unlearn(self, name: str, *, kind: Kind = Kind.DOCUMENT, owner: str = "") -> bool:
        """Delete a learnt text. Returns whether there was one.

        Raises:
            IndexUnavailable: It may still be there.
        """
        if not self._backend.is_open:
            return False
        found = await self._backend.write(lambda index: index.remove(kind, owner, name))
        await self.look()
        return found

    async def fill(self, progress: Progress = lambda done, of: None) -> int:
        """Give vectors of the present model to what has none. Returns how many it gave.

        Raises:
            EmbeddingFailed, IndexUnavailable: The rest is still without.
        """
        backend, done = self._backend, 0
        while backend.is_open and (waiting := await backend.read(lambda index: index.pending(FILL_AT_ONCE))):
            vectors = await backend.embed([one.text for one in waiting])
            # Bound now: the loop goes on to other passages.
            await backend.write(lambda index, some=waiting, of=vectors: index.fill(some, of))  # type: ignore[misc]
            done += len(waiting)
            progress(done, max(done, self.waiting_for_vectors))
        self.waiting_for_vectors = 0
        return done
