"""What operators do with what the agent remembers: learn, list, unlearn, forget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from voice_agent.channels.desk import LearntText, NotLearnt, NotNow
from voice_agent.diagnostics import RemediableError
from voice_agent.recall.documents import digest_of, read_document
from voice_agent.recall.embedding import EmbeddingFailed
from voice_agent.recall.entries import Kind, Source
from voice_agent.recall.index import Forget, IndexUnavailable
from voice_agent.recall.readers import Unreadable
from voice_agent.service.recall import RecallKeeper
from voice_agent.store.protocol import StoreUnavailable

MAX_AT_ONCE = 2
"""Texts that are learnt or wait for it; more are refused, so that nothing piles up."""
_FAULTS = (EmbeddingFailed, IndexUnavailable, StoreUnavailable, RemediableError)


class Knowledge:
    """Implements `voice_agent.channels.desk.KnowledgeDesk`."""

    def __init__(self, keeper: RecallKeeper, clock: Callable[[], float] = time.time) -> None:
        self._keeper, self._memories, self._clock = keeper, keeper.memories, clock
        self._learning, self._waiting = asyncio.Lock(), 0

    async def learn(self, id: str, media_type: str, data: bytes, title: str) -> LearntText:
        """Learn a text in the place of the one with this id.

        Raises:
            NotLearnt: It cannot be read.
            NotNow: Recall cannot be used, or as much is being learnt as may be.
        """
        if self._memories.options.declarative.enabled is False:
            raise NotNow("Documents are not recalled here: recall.declarative.enabled is false.")
        if self._waiting >= MAX_AT_ONCE:
            raise NotNow("Other texts are being learnt; try again when they are done.")
        self._waiting += 1
        try:
            async with self._learning:
                return await self._learn(id, media_type, data, title)
        except Unreadable as fault:
            raise NotLearnt(f"{id} cannot be learnt: {fault}.") from fault
        except _FAULTS as fault:
            raise NotNow(f"Nothing was learnt: {fault}") from fault
        finally:
            self._waiting -= 1

    async def _learn(self, id: str, media_type: str, data: bytes, title: str) -> LearntText:
        await self._memories.open(wanted=True)
        digest = digest_of(data, f"{media_type} {title}" if title else media_type)
        known = await self._known(id)
        if known is not None and known.digest == digest:
            return _shown(known, changed=False)
        document = await asyncio.to_thread(read_document, id, data, media_type, title, digest=digest)
        return _shown(await self._memories.library.learn(document))

    async def _known(self, id: str) -> Source | None:
        known = await self._memories.library.sources(Kind.DOCUMENT)
        return next((source for source in known if source.name == id), None)

    async def texts(self) -> Sequence[LearntText]:
        """Return what has been learnt.

        Raises:
            NotNow: It cannot be read now.
        """
        try:
            return [_shown(source) for source in await self._memories.library.sources(Kind.DOCUMENT)]
        except _FAULTS as fault:
            raise NotNow(str(fault)) from fault

    async def unlearn(self, id: str) -> bool:
        """Return whether there was such a text.

        Raises:
            NotNow: It may still be there.
        """
        try:
            return await self._memories.library.unlearn(id)
        except _FAULTS as fault:
            raise NotNow(str(fault)) from fault

    async def forget(
        self, *, conversation: str | None, caller: str | None, older_than_days: float | None
    ) -> Mapping[str, int]:
        """Forget what was said.

        Raises:
            NotNow: Some of it may still be there.
        """
        older_than = None if older_than_days is None else self._clock() - older_than_days * 86_400
        try:
            return await self._keeper.forget(Forget(conversation, caller, older_than))
        except _FAULTS as fault:
            raise NotNow(f"Not all of it was forgotten: {fault}") from fault


def _shown(source: Source, *, changed: bool = True) -> LearntText:
    return LearntText(source.name, source.passages, source.learnt_at, changed)
