"""Recall as the service uses it: questions answered in time, texts learnt, what was said kept and forgotten.

::

    turn       ── recall ──▶ embed (thread) ──▶ index (thread) ──▶ found
    learning   ── embed ── embed ── embed ──▶ one transaction a text
    loop       never waits for a disk or a model
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from voice_agent.config import RecallOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.recall.chunks import embedded_text
from voice_agent.recall.documents import Document
from voice_agent.recall.embedding import Embedder, EmbeddingFailed
from voice_agent.recall.entries import Episode, Found, Kind, Source, Who
from voice_agent.recall.index import Forget, Index, IndexUnavailable
from voice_agent.recall.index_threads import IndexThreads
from voice_agent.recall.procedures import Procedures
from voice_agent.recall.references import differences
from voice_agent.telemetry.metrics import RECALL_FAILURES, RECALL_SECONDS

if TYPE_CHECKING:
    from voice_agent.recall.index import Vectors

log = logging.getLogger(__name__)
T = TypeVar("T")

FILL_AT_ONCE = 32
"""Passages of one transaction while vectors of a new model are made."""
MAX_QUERY_CHARS = 2000
ASKED = 0.6
"""What a question that is searched for on purpose may lie further away than what comes unasked, as a share."""
REPORT_AGAIN_S = 60.0
Progress = Callable[[int, int], None]
_FAULTS = (EmbeddingFailed, IndexUnavailable, RemediableError)


class Memories:
    """Implements `voice_agent.recall.protocol.Recalls` over an index and an embedder.

    Args:
        clock: The calendar, as seconds since 1970: what is learnt outlives processes.
    """

    def __init__(
        self,
        options: RecallOptions,
        index: Index,
        embedder: Callable[[], Embedder],
        *,
        exists: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.options, self._index, self._make_embedder = options, index, embedder
        self._exists, self._clock = exists, clock
        self._embedder: Embedder | None = None
        self._threads = IndexThreads()
        self._procedures = Procedures(self._embed)
        self._opening = asyncio.Lock()
        self._documents = 0
        self._waiting_for_vectors = 0
        self._reported_at = -REPORT_AGAIN_S
        self._owners: frozenset[str] = frozenset()

    # --- what the dialogue asks ----------------------------------------------------------------

    @property
    def budget_s(self) -> float:
        return self.options.budget_ms / 1000

    @property
    def latest(self) -> int:
        return self.options.latest_n_history

    @property
    def k(self) -> int:
        return self.options.k

    @property
    def prompt_tokens(self) -> int:
        return self.options.prompt_tokens

    @property
    def is_open(self) -> bool:
        return self._embedder is not None

    @property
    def keeps_episodes(self) -> bool:
        return self.options.episodic.enabled

    @property
    def knows_documents(self) -> bool:
        return self.is_open and self._declarative

    @property
    def fills_prompts(self) -> bool:
        documents = self._declarative and self.options.declarative.in_prompt
        return self.is_open and (self.keeps_episodes or documents)

    @property
    def procedures_above(self) -> int | None:
        return self.options.procedural.above if self.is_open and self.options.procedural.enabled else None

    @property
    def _declarative(self) -> bool:
        return self.options.declarative.enabled is not False and self._documents > 0

    def has_references(self, owner: str) -> bool:
        return owner in self._owners

    async def recall(self, query: str, who: Who) -> Sequence[Found]:
        """See `Recalls.recall`."""
        options, began = self.options, asyncio.get_running_loop().time()
        documents = self._declarative and options.declarative.in_prompt
        if not query.strip() or not (documents or self.keeps_episodes):
            return ()
        try:
            (vector,) = await self._embed([query[:MAX_QUERY_CHARS]])

            def read() -> list[Found]:
                k, threshold = options.k, options.threshold
                found: list[Found] = []
                if self.keeps_episodes:
                    # More than wanted: some may stand in the prompt's history already.
                    found += self._index.episodes(vector, who, limit=4 * k, threshold=threshold)
                if documents:
                    near = self._index.search(
                        vector, query, documents=True, owners=(), limit=2 * k, threshold=threshold
                    )
                    # A shared word alone is no reason to take up room in a prompt that nobody asked for it.
                    found += [one for one in near if one.score >= threshold][:k]
                return found

            found = await self._read(read)
        except _FAULTS as fault:
            self._failed(fault)
            return ()
        RECALL_SECONDS.observe(asyncio.get_running_loop().time() - began)
        return found

    async def search(self, query: str, owners: Sequence[str], limit: int) -> Sequence[Found] | None:
        """See `Recalls.search`."""
        if not self.knows_documents:
            return None
        query = query[:MAX_QUERY_CHARS]
        try:
            (vector,) = await self._embed([query])
            return await self._read(
                lambda: self._index.search(
                    vector, query, documents=True, owners=owners, limit=limit, threshold=ASKED * self.options.threshold
                )
            )
        except _FAULTS as fault:
            self._failed(fault)
        try:
            found = await self._read(
                lambda: self._index.search_words(query, documents=True, owners=owners, limit=limit)
            )
        except _FAULTS:
            return None
        return found or None

    async def fitting(self, query: str, procedures: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
        """See `Recalls.fitting`."""
        try:
            return await self._procedures.fitting(query[:MAX_QUERY_CHARS], procedures)
        except _FAULTS as fault:
            self._failed(fault)
            return None

    # --- what is learnt ------------------------------------------------------------------------

    async def open(self, *, wanted: bool = False) -> None:
        """Open what is needed: nothing where every kind is off and nothing was ever learnt. Idempotent.

        Args:
            wanted: Something is to be learnt now.

        Raises:
            RemediableError: The index or the embedding model cannot be used.
        """
        async with self._opening:
            if self._embedder is not None:
                return
            options = self.options
            learnt = options.declarative.enabled is not False and await asyncio.to_thread(self._exists)
            if not (
                wanted or learnt or options.declarative.enabled or self.keeps_episodes or options.procedural.enabled
            ):
                return
            embedder = self._make_embedder()
            self._waiting_for_vectors = await self._write(lambda: self._index.open(embedder.identity))
            self._embedder = embedder
            await self._count()
            if self._documents or self.keeps_episodes or options.procedural.enabled:
                # Weights are loaded now, not in the first caller's turn.
                await self._warm_up(embedder)
            if self._waiting_for_vectors:
                log.warning(
                    "%d passages were embedded by another model and are embedded anew with %s; until then they are "
                    "found by their words only",
                    self._waiting_for_vectors,
                    embedder.identity,
                )

    async def refresh(self) -> None:
        """See what other processes have learnt or unlearnt; see `open`.

        Raises:
            RemediableError, IndexUnavailable: It cannot be seen now.
        """
        await self.open()
        if self.is_open:
            await self._count()

    async def _warm_up(self, embedder: Embedder) -> None:
        try:
            await embedder.embed(["What are your opening hours?"])
        except EmbeddingFailed as fault:
            log.warning("recall is not warm: %s", fault)

    async def fill(self, progress: Progress = lambda done, of: None) -> int:
        """Give vectors of the present model to what has none. Returns how many it gave.

        Raises:
            EmbeddingFailed, IndexUnavailable: The rest is still without.
        """
        done = 0
        while self.is_open and (waiting := await self._read(lambda: self._index.pending(FILL_AT_ONCE))):
            vectors = await self._embed([one.text for one in waiting])
            await self._write(partial(self._index.fill, waiting, vectors))
            done += len(waiting)
            progress(done, max(done, self._waiting_for_vectors))
        self._waiting_for_vectors = 0
        return done

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
            parts.append(await self._embed(texts[at : at + FILL_AT_ONCE]))
            if progress is not None:
                progress(min(at + FILL_AT_ONCE, len(texts)), len(texts))
        import numpy as np

        vectors = np.concatenate(parts)
        source = Source(kind, owner, document.name, document.digest, self._clock(), len(texts))
        await self._write(lambda: self._index.replace(source, document.passages, vectors))
        await self._count()
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
        if not self.is_open:
            return False
        found = await self._write(lambda: self._index.remove(kind, owner, name))
        await self._count()
        return found

    async def sources(self, kind: Kind = Kind.DOCUMENT, owner: str | None = None) -> Sequence[Source]:
        """Return what has been learnt.

        Raises:
            IndexUnavailable: It cannot be read now.
        """
        return await self._read(lambda: self._index.sources(kind, owner)) if self.is_open else ()

    async def _count(self) -> None:
        self._documents = len(await self._read(lambda: self._index.sources(Kind.DOCUMENT)))

    # --- what was said -------------------------------------------------------------------------

    async def keep(self, episodes: Sequence[Episode]) -> None:
        """Keep what was said.

        Raises:
            EmbeddingFailed, IndexUnavailable: Nothing of it was kept.
        """
        vectors = await self._embed([episode.text for episode in episodes])
        await self._write(lambda: self._index.keep(episodes, vectors))

    async def conversations(self) -> Sequence[str]:
        """Return the conversations of which anything is kept."""
        return await self._read(self._index.conversations) if self.is_open else ()

    async def forget(self, what: Forget) -> int:
        """Delete what was said, for good. Returns how many exchanges.

        Raises:
            IndexUnavailable: Some may still be there.
        """
        return await self._write(lambda: self._index.forget(what)) if self.is_open else 0

    async def aclose(self) -> None:
        """Close the index and let the threads end. Idempotent."""
        embedder, self._embedder = self._embedder, None
        if embedder is not None:
            await embedder.aclose()
            try:
                await self._write(self._index.close)
            except IndexUnavailable:
                log.debug("the index of recall was closed before")
        self._threads.close()

    # --- threads -------------------------------------------------------------------------------

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        if self._embedder is None:
            raise IndexUnavailable("recall is not open")
        return await self._embedder.embed(texts)

    async def _read(self, work: Callable[[], T]) -> T:
        return await self._threads.read(work)

    async def _write(self, work: Callable[[], T]) -> T:
        return await self._threads.write(work)

    def _failed(self, fault: Exception) -> None:
        RECALL_FAILURES.inc()
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= REPORT_AGAIN_S:
            self._reported_at = now
            log.error("nothing is recalled: %s", fault)
