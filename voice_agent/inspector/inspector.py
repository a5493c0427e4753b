"""Answers what the inspector's pages ask: reads the store as everything else does, redacts, and tells what happened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from voice_agent.call.recordings import Recordings
from voice_agent.call.registry import CallRegistry
from voice_agent.config import InspectorOptions
from voice_agent.dialogue.events import utc_now
from voice_agent.dialogue.model_call import ModelCallRecord
from voice_agent.dialogue.project import Project
from voice_agent.inspector.account import account
from voice_agent.inspector.feed import LiveFeed, Viewer
from voice_agent.inspector.flow import flow
from voice_agent.inspector.prompts import PromptLog
from voice_agent.inspector.redaction import Names, redacted, redactor_for
from voice_agent.inspector.search import ConversationSearch, Search
from voice_agent.store.protocol import ConversationStore, Record

log = logging.getLogger(__name__)

MAX_RECORDS = 4_000
"""Records of a conversation that are looked at, the newest: some four hundred turns."""


class Unknown(Exception):
    """There is no such conversation, call or recording."""


class Busy(Exception):
    """The conversation is going on; it cannot be deleted now."""


class Agents(Protocol):
    """What is asked of the agent in all its versions."""

    @property
    def project(self) -> Project: ...


class Inspector:
    """Implements what `voice_agent.server.inspection` serves.

    Args:
        forget: Deletes what else is kept of a conversation; raises `StoreUnavailable` where it cannot.
    """

    def __init__(
        self,
        options: InspectorOptions,
        agents: Agents,
        store: ConversationStore,
        registry: CallRegistry,
        recordings: Recordings,
        forget: Callable[[str], Awaitable[None]],
    ) -> None:
        self._forget = forget
        self.options = options
        self._agents, self._store, self._registry, self._recordings = agents, store, registry, recordings
        self._search = ConversationSearch(store, registry)
        self._feed = LiveFeed(options.max_viewers)
        self._prompts = PromptLog()
        # One account at a time: calls share the interpreter with whoever looks.
        self._one = asyncio.Semaphore(1)

    # --- what the service tells ----------------------------------------------------------------

    def on_event(self, record: Record) -> None:
        """A conversation has recorded something."""
        self._feed.tell(record)

    def on_model_call(self, conversation_id: str, record: ModelCallRecord) -> None:
        """A model call of a conversation has ended."""
        if self.options.prompts:
            self._prompts.take(conversation_id, record, utc_now().isoformat(timespec="milliseconds"))

    # --- what pages ask ------------------------------------------------------------------------

    def watch(self, conversation_id: str | None) -> Viewer:
        """Follow one conversation, or all.

        Raises:
            TooManyViewers: There are as many as may be.
        """
        return self._feed.watch(conversation_id)

    def close(self) -> None:
        """Let go of all who follow: the service stops."""
        self._feed.close()

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls on the line, the oldest first."""
        return [
            {
                "id": call.call_id,
                "conversation": call.conversation_id,
                "channel": call.channel,
                "state": call.state.value,
                "seconds": round(call.seconds, 1),
            }
            for call in sorted(self._registry.active, key=lambda call: -call.seconds)
        ]

    async def conversations(self, search: Search, limit: int, cursor: str | None) -> dict[str, Any]:
        """Return a page of conversations; see `ConversationSearch.page`."""
        return await self._search.page(search, limit, cursor)

    async def conversation(self, conversation_id: str, *, personal: bool) -> dict[str, Any]:
        """Return one conversation as told by its records; see `account` and `flow`.

        Raises:
            Unknown: There is none.
            StoreUnavailable: The store cannot be read now.
        """
        async with self._one:
            records, total = await self._records(conversation_id)
            return await asyncio.to_thread(self._told, conversation_id, records, total, personal)

    def _told(self, conversation_id: str, records: Sequence[Record], total: int, personal: bool) -> dict[str, Any]:
        project = self._agents.project
        shown = self._shown(records, project, personal)
        told = account(shown, _declared(project))
        for call in told["calls"]:
            path = self._recordings.find(conversation_id, call["id"])
            call["recording"] = None if path is None else path.name
            call["live"] = False
        live = self._registry.is_live(conversation_id)
        if live and told["calls"]:
            told["calls"][-1]["live"] = told["calls"][-1]["outcome"] is None
        return {
            "id": conversation_id,
            "caller": str(records[-1].get("user_id") or conversation_id),
            "started_at": records[0].get("timestamp"),
            "updated_at": records[-1].get("timestamp"),
            "live": live,
            "records": total,
            "complete": total == len(records),
            "personal_data": personal,
            **told,
            "flow": flow(shown, project),
        }

    async def records(self, conversation_id: str, *, after: int, limit: int, personal: bool) -> dict[str, Any]:
        """Return a page of records, oldest first: ``{records, next}``; ``next`` is ``after`` of the next page.

        Raises:
            Unknown: There is no such conversation.
            StoreUnavailable: The store cannot be read now.
        """
        newest, _ = await self._records(conversation_id)
        page = await self._store.events(conversation_id, after=after, limit=limit)
        project = self._agents.project

        def show() -> list[dict[str, Any]]:
            if personal:
                return [dict(record) for record in page]
            fields = _personal(project)
            # What is personal is known from the whole; a page alone may come before the value was stored.
            redactor = redactor_for([*page, *newest], fields)
            known = {record.get("sequence") for record in page}
            rest = [r for r in newest if r.get("sequence") not in known]
            return redacted([*page, *rest], fields, redactor)[: len(page)]

        async with self._one:
            shown = await asyncio.to_thread(show)
        more = page[-1]["sequence"] if len(page) == limit else None
        return {"records": shown, "next": more}

    async def prompts(self, conversation_id: str, *, personal: bool) -> dict[str, Any]:
        """Return the prompts of recent model calls: ``{enabled, calls}``.

        Raises:
            Unknown: There is no such conversation.
        """
        records, _ = await self._records(conversation_id)
        calls = self._prompts.of(conversation_id)
        if not personal:
            redactor = redactor_for(records, _personal(self._agents.project))
            async with self._one:
                calls = await asyncio.to_thread(redactor.value, calls)
        return {"enabled": self.options.prompts, "calls": calls}

    async def export(self, conversation_id: str, *, personal: bool) -> dict[str, Any]:
        """Return all that is told of a conversation, with its newest records, as one document.

        Raises:
            Unknown: There is no such conversation.
        """
        async with self._one:
            records, total = await self._records(conversation_id)
            told = await asyncio.to_thread(self._told, conversation_id, records, total, personal)
            shown = await asyncio.to_thread(self._shown, records, self._agents.project, personal)
        return {**told, "events": shown}

    async def recording(self, conversation_id: str, call_id: str) -> Path:
        """Return the audio file of a call.

        Raises:
            Unknown: It was not recorded, or the recording was deleted.
        """
        path = await asyncio.to_thread(self._recordings.find, conversation_id, call_id)
        if path is None:
            raise Unknown
        return path

    async def peaks(self, conversation_id: str, call_id: str) -> bytes:
        """Return the loudness of a recording, two bytes each 50 ms; nothing where there is none."""
        return await self._recordings.peaks(conversation_id, call_id)

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation with its recordings and prompts.

        Raises:
            Busy: It is on a call now.
            OSError, StoreUnavailable: Some of it may still be there.
        """
        if self._registry.is_live(conversation_id):
            raise Busy
        await self._recordings.delete(conversation_id)
        await self._forget(conversation_id)
        await self._store.delete(conversation_id)
        self._prompts.forget(conversation_id)
        log.info("a conversation and its recordings were deleted", extra={"conversation": conversation_id})

    async def _records(self, conversation_id: str) -> tuple[Sequence[Record], int]:
        stored = await self._store.load(conversation_id, max_events=MAX_RECORDS)
        if stored is None or not stored.events:
            raise Unknown
        first = int(stored.events[0].get("sequence", 0))
        return stored.events, len(stored.events) + (first if len(stored.events) >= MAX_RECORDS else 0)

    def _shown(self, records: Sequence[Record], project: Project, personal: bool) -> list[dict[str, Any]]:
        return [dict(r) for r in records] if personal else redacted(records, _personal(project))


def _personal(project: Project) -> Names:
    return frozenset((field.namespace, field.name) for field in project.schema if field.pii)


def _declared(project: Project) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    return {
        (field.namespace, field.name): {"type": field.type, "public": field.public, "pii": field.pii}
        for field in project.schema
    }
