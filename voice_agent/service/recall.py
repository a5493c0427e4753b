"""Keeps recall in step with the service: references are learnt, what was said is kept, and forgotten in time.

::

    tracker events ──▶ exchanges ──▶ queue ──▶ embedded and written, a few at a time
    project        ──▶ references learnt anew when they have changed
    every hour     ──▶ what the store no longer has, or is too old, is forgotten
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from voice_agent.diagnostics import RemediableError
from voice_agent.dialogue.knowledge import WordIndex
from voice_agent.dialogue.project import Project
from voice_agent.dialogue.recalling import procedures
from voice_agent.recall.documents import Document
from voice_agent.recall.embedding import EmbeddingFailed
from voice_agent.recall.entries import Episode, Passage
from voice_agent.recall.episodes import Exchanges
from voice_agent.recall.index import Forget, IndexUnavailable
from voice_agent.recall.memories import Memories
from voice_agent.store.protocol import ConversationStore, StoreUnavailable
from voice_agent.telemetry.metrics import RECALL_EPISODES_DROPPED

log = logging.getLogger(__name__)

MAX_WAITING = 500
"""Exchanges that wait to be kept; beyond this the newest are dropped and counted."""
AT_ONCE = 16
LOOK_EVERY_S = 1.0
"""How often it is looked whether the project has a new version, or something was learnt."""
SWEEP_EVERY_S = 3600.0
RETRY_S = 30.0
_FAULTS = (EmbeddingFailed, IndexUnavailable, RemediableError)


class RecallKeeper:
    """Owns what recall does beside the calls.

    Args:
        project: The newest version.
        retention_days: As the store keeps conversations; 0 for ever.
        is_live: Whether a conversation is on a call, and may not be in the store yet.
    """

    def __init__(
        self,
        memories: Memories,
        store: ConversationStore,
        project: Callable[[], Project],
        retention_days: float,
        is_live: Callable[[str], bool] = lambda conversation_id: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.memories, self._store, self._project = memories, store, project
        self._retention_days, self._is_live, self._clock = retention_days, is_live, clock
        self._exchanges = Exchanges()
        self._waiting: deque[Episode] = deque()
        self._some_wait = asyncio.Event()
        self._writing = asyncio.Lock()
        """Held from taking what waits until it is kept: what is forgotten is then in the queue or in the index."""
        self._learnt_from: Project | None = None
        self._again_at = 0.0

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take a record of any conversation; never waits."""
        if not self.memories.keeps_episodes or (episode := self._exchanges.add(event)) is None:
            return
        if len(self._waiting) >= MAX_WAITING:
            RECALL_EPISODES_DROPPED.inc()
            return
        self._waiting.append(episode)
        self._some_wait.set()

    async def open(self) -> None:
        """Open what the settings ask for.

        Raises:
            RemediableError: The index or the model cannot be used.
        """
        await self.memories.open()
        if self.memories.procedures_above is not None:
            await self.memories.fitting("What can you do?", procedures(self._project()))

    async def run(self) -> None:
        """Do all of it, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(), name="recall.keep")
            group.create_task(self._follow(), name="recall.follow")
            group.create_task(self._sweep(), name="recall.sweep")

    async def catch_up(self) -> None:
        """See what other processes have learnt; learn references and vectors that are missing.

        Faults are logged; it is tried again later.
        """
        memories, project = self.memories, self._project()
        try:
            await memories.refresh()
            if not memories.is_open:
                return
            await memories.library.fill()
            if memories.knows_documents and project is not self._learnt_from:
                changed = await memories.library.learn_references(references_of(project))
                self._learnt_from = project
                if changed:
                    log.info("%d reference texts were learnt", changed)
        except _FAULTS as fault:
            log.warning("recall is behind: %s", fault)
            self._again_at = asyncio.get_running_loop().time() + RETRY_S

    async def flush(self, limit_s: float) -> None:
        """Keep what waits to be kept, within limits."""
        try:
            async with asyncio.timeout(limit_s):
                while self._waiting:
                    await self._keep_some()
        except TimeoutError:
            log.warning("%d exchanges were not kept for recall", len(self._waiting))

    async def forget(self, what: Forget) -> dict[str, int]:
        """Forget conversations in the store and what is recalled of them; see `Forget`.

        Returns:
            How many ``conversations`` and ``exchanges`` were deleted.

        Raises:
            StoreUnavailable, IndexUnavailable: Some of it may still be there.
        """
        conversations = 0
        for name in await self._conversations(what):
            if not self._is_live(name):
                await self._store.delete(name)
                conversations += 1
        return {"conversations": conversations, "exchanges": await self._forget_exchanges(what)}

    async def forget_conversation(self, conversation_id: str) -> None:
        """Forget what is recalled of a conversation that is deleted elsewhere.

        Raises:
            StoreUnavailable: Some of it may still be there.
        """
        try:
            await self._forget_exchanges(Forget(conversation=conversation_id))
        except IndexUnavailable as fault:
            raise StoreUnavailable(str(fault)) from fault

    async def _forget_exchanges(self, what: Forget) -> int:
        async with self._writing:
            kept = [episode for episode in self._waiting if not what.covers(episode)]
            count = len(self._waiting) - len(kept)
            self._waiting = deque(kept)
            return count + await self.memories.forget(what)

    async def _conversations(self, what: Forget) -> Sequence[str]:
        if what.older_than is not None:
            # The store forgets by age itself, by its own settings.
            return ()
        if what.conversation is not None:
            known = what.caller is None and await self._store.load(what.conversation) is not None
            return (what.conversation,) if known else ()
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await self._store.conversations(caller=what.caller, limit=200, cursor=cursor)
            # The id of a conversation stands in for a caller whom nobody has named.
            found += [one.id for one in page.conversations if one.id != what.caller]
            cursor = page.next
            if cursor is None:
                return found

    async def aclose(self) -> None:
        await self.flush(2.0)
        await self.memories.aclose()

    # --- beside the calls ----------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            await self._some_wait.wait()
            await self._keep_some()

    async def _keep_some(self) -> None:
        async with self._writing:
            some = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            if not self._waiting:
                self._some_wait.clear()
            try:
                if some:
                    await self.memories.keep(some)
            except _FAULTS as fault:
                RECALL_EPISODES_DROPPED.inc(len(some))
                log.warning("%d exchanges were not kept for recall: %s", len(some), fault)

    async def _follow(self) -> None:
        while True:
            if asyncio.get_running_loop().time() >= self._again_at:
                await self.catch_up()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _sweep(self) -> None:
        while True:
            pause_s = LOOK_EVERY_S
            if self.memories.is_open:
                try:
                    await self.sweep()
                    pause_s = SWEEP_EVERY_S
                except (*_FAULTS, StoreUnavailable) as fault:
                    log.warning("what is to be forgotten is still recalled: %s", fault)
                    pause_s = RETRY_S
            await asyncio.sleep(pause_s)

    async def sweep(self) -> int:
        """Forget what is too old, and what the store does not have any more. Returns how many exchanges.

        Raises:
            StoreUnavailable, IndexUnavailable: Some of it may still be there.
        """
        count = 0
        if self._retention_days:
            older_than = self._clock() - self._retention_days * 86_400
            count += await self.memories.forget(Forget(older_than=older_than))
        for name in await self.memories.conversations():
            if not self._is_live(name) and not await self._is_kept(name):
                count += await self.memories.forget(Forget(conversation=name))
        return count

    async def _is_kept(self, name: str) -> bool:
        # What was just said may not be on the disk yet: only the slower question sees it.
        return bool(await self._store.events(name, limit=1)) or await self._store.load(name, max_events=1) is not None


def references_of(project: Project) -> dict[str, list[Document]]:
    """Return the reference texts of a project by their owner: a skill's id, or empty for the project's own."""
    found: dict[str, list[Document]] = {}
    owners = {"": project.knowledge, **{skill.id: skill.knowledge for skill in project.skills.values()}}
    for owner, index in owners.items():
        texts: dict[str, list[Passage]] = {}
        for passage in index.passages if isinstance(index, WordIndex) else ():
            texts.setdefault(passage.source, []).append(passage)
        if isinstance(index, WordIndex):
            found[owner] = [Document(name, _digest(passages), tuple(passages)) for name, passages in texts.items()]
    return found


def _digest(passages: Sequence[Passage]) -> str:
    found = hashlib.sha256()
    for passage in passages:
        found.update(f"{passage.title}\x00{passage.text}\x00".encode("utf-8", "replace"))
    return found.hexdigest()
