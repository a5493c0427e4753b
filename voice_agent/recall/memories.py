"""Recall as the service uses it: questions answered in time, what was said kept and forgotten.

::

    turn       ── recall ──▶ embed (thread) ──▶ index (thread) ──▶ found
    loop       never waits for a disk or a model
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from voice_agent.config import RecallOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.recall.backend import Backend
from voice_agent.recall.embedding import Embedder, EmbeddingFailed
from voice_agent.recall.entries import Episode, Found, Who
from voice_agent.recall.index import Forget, Index, IndexUnavailable
from voice_agent.recall.library import Library
from voice_agent.recall.procedures import Procedures
from voice_agent.telemetry.metrics import RECALL_FAILURES, RECALL_SECONDS

log = logging.getLogger(__name__)

MAX_QUERY_CHARS = 2000
ASKED = 0.6
"""What a question that is searched for on purpose may lie further away than what comes unasked, as a share."""
REPORT_AGAIN_S = 60.0
_FAULTS = (EmbeddingFailed, IndexUnavailable, RemediableError)


class Memories:
    """Implements `voice_agent.recall.protocol.Recalls` over an index and an embedder.

    Args:
        clock: The calendar, as seconds since 1970: what is learnt outlives processes.

    Attributes:
        library: What was learnt.
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
        self.options, self._exists = options, exists
        self._backend = Backend(index, embedder)
        self.library = Library(self._backend, clock)
        self._procedures = Procedures(self._backend.embed)
        self._opening = asyncio.Lock()
        self._reported_at = -REPORT_AGAIN_S

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
        return self._backend.is_open

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
        return self.options.declarative.enabled is not False and self.library.documents > 0

    def has_references(self, owner: str) -> bool:
        return self.library.has_references(owner)

    async def recall(self, query: str, who: Who) -> Sequence[Found]:
        """See `Recalls.recall`."""
        options, began = self.options, asyncio.get_running_loop().time()
        documents = self._declarative and options.declarative.in_prompt
        if not query.strip() or not (documents or self.keeps_episodes):
            return ()
        try:
            (vector,) = await self._backend.embed([query[:MAX_QUERY_CHARS]])

            def read(index: Index) -> list[Found]:
                k, threshold = options.k, options.threshold
                found: list[Found] = []
                if self.keeps_episodes:
                    # More than wanted: some may stand in the prompt's history already.
                    found += index.episodes(vector, who, limit=4 * k, threshold=threshold)
                if documents:
                    near = index.search(vector, query, documents=True, owners=(), limit=2 * k, threshold=threshold)
                    # A shared word alone is no reason to take up room in a prompt that nobody asked for it.
                    found += [one for one in near if one.score >= threshold][:k]
                return found

            found = await self._backend.read(read)
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
            (vector,) = await self._backend.embed([query])
            return await self._backend.read(
                lambda index: index.search(
                    vector, query, documents=True, owners=owners, limit=limit, threshold=ASKED * self.options.threshold
                )
            )
        except _FAULTS as fault:
            self._failed(fault)
        try:
            found = await self._backend.read(
                lambda index: index.search_words(query, documents=True, owners=owners, limit=limit)
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

    # --- from open to closed -------------------------------------------------------------------

    async def open(self, *, wanted: bool = False) -> None:
        """Open what is needed: nothing where every kind is off and nothing was ever learnt. Idempotent.

        Args:
            wanted: Something is to be learnt now.

        Raises:
            RemediableError: The index or the embedding model cannot be used.
        """
        async with self._opening:
            if self.is_open:
                return
            options, library = self.options, self.library
            learnt = options.declarative.enabled is not False and await asyncio.to_thread(self._exists)
            if not (
                wanted or learnt or options.declarative.enabled or self.keeps_episodes or options.procedural.enabled
            ):
                return
            library.waiting_for_vectors = await self._backend.open()
            await library.look()
            if library.documents or self.keeps_episodes or options.procedural.enabled:
                # Weights are loaded now, not in the first caller's turn.
                await self._warm_up()
            if library.waiting_for_vectors:
                log.warning(
                    "%d passages were embedded by another model and are embedded anew with %s; until then they are "
                    "found by their words only",
                    library.waiting_for_vectors,
                    self._backend.model,
                )

    async def refresh(self) -> None:
        """See what other processes have learnt or unlearnt; see `open`.

        Raises:
            RemediableError, IndexUnavailable: It cannot be seen now.
        """
        await self.open()
        if self.is_open:
            await self.library.look()

    async def _warm_up(self) -> None:
        try:
            await self._backend.embed(["What are your opening hours?"])
        except EmbeddingFailed as fault:
            log.warning("recall is not warm: %s", fault)

    async def aclose(self) -> None:
        """Close the index and let the threads end. Idempotent."""
        try:
            await self._backend.aclose()
        except IndexUnavailable:
            log.debug("the index of recall was closed before")

    # --- what was said -------------------------------------------------------------------------

    async def keep(self, episodes: Sequence[Episode]) -> None:
        """Keep what was said.

        Raises:
            EmbeddingFailed, IndexUnavailable: Nothing of it was kept.
        """
        vectors = await self._backend.embed([episode.text for episode in episodes])
        await self._backend.write(lambda index: index.keep(episodes, vectors))

    async def conversations(self) -> Sequence[str]:
        """Return the conversations of which anything is kept."""
        return await self._backend.read(lambda index: index.conversations()) if self.is_open else ()

    async def forget(self, what: Forget) -> int:
        """Delete what was said, for good. Returns how many exchanges.

        Raises:
            IndexUnavailable: Some may still be there.
        """
        return await self._backend.write(lambda index: index.forget(what)) if self.is_open else 0

    def _failed(self, fault: Exception) -> None:
        RECALL_FAILURES.inc()
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= REPORT_AGAIN_S:
            self._reported_at = now
            log.error("nothing is recalled: %s", fault)
