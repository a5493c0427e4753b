"""Finds conversations in the store: by id, caller, days and how they ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voice_agent.call.registry import CallRegistry
from voice_agent.inspector.account import outcome_of
from voice_agent.store.protocol import ConversationStore, ConversationSummary

TAIL_RECORDS = 40
"""Newest records that tell how a conversation ended."""
MAX_PAGES = 20
"""Pages of the store that one search reads."""


@dataclass(frozen=True, slots=True)
class Search:
    """What conversations are looked for.

    Attributes:
        text: In the conversation's id or the caller, any case.
        since: First day, or instant, as ISO 8601; compared with when it was last written.
        until: Last day, or instant; compared with when it began.
        outcome: How it ended; ``live`` for those on a call now.
    """

    text: str = ""
    since: str = ""
    until: str = ""
    outcome: str = ""

    def fits(self, summary: ConversationSummary) -> bool:
        wanted = self.text.casefold()
        return (
            (not wanted or wanted in summary.id.casefold() or wanted in summary.caller.casefold())
            and (not self.since or summary.updated_at >= self.since)
            # A day is meant to its end: "2025-01-31" is before "2025-01-31T…".
            and (not self.until or summary.started_at[: len(self.until)] <= self.until)
        )


class ConversationSearch:
    """Looks through the conversations of a store, and knows which of them are on a call now."""

    def __init__(self, store: ConversationStore, registry: CallRegistry) -> None:
        self._store, self._registry = store, registry

    async def page(self, search: Search, limit: int, cursor: str | None) -> dict[str, Any]:
        """Return conversations that fit, the one written last first: ``{conversations, next, scanned}``.

        Looks through at most `MAX_PAGES` pages of the store; ``next`` goes on from there, also when few were found.

        Raises:
            ValueError: Not a cursor.
            StoreUnavailable: The store cannot be read now.
        """
        found: list[dict[str, Any]] = []
        scanned = 0
        for _ in range(MAX_PAGES):
            page = await self._store.conversations(limit=limit, cursor=cursor)
            scanned, cursor = scanned + len(page.conversations), page.next
            for summary in page.conversations:
                if search.fits(summary):
                    row = await self._row(summary)
                    if not search.outcome or search.outcome == row["outcome"]:
                        found.append(row)
            # They come the newest first: what follows is older still.
            past = search.since and page.conversations and page.conversations[-1].updated_at < search.since
            if past:
                cursor = None
            if cursor is None or len(found) >= limit:
                break
        return {"conversations": found, "next": cursor, "scanned": scanned}

    async def _row(self, summary: ConversationSummary) -> dict[str, Any]:
        live = self._registry.is_live(summary.id)
        row = {
            "id": summary.id,
            "caller": summary.caller,
            "started_at": summary.started_at,
            "updated_at": summary.updated_at,
            "records": summary.events,
            "live": live,
        }
        if live:
            return {**row, "outcome": "live", "reason": None, "seconds": None}
        stored = await self._store.load(summary.id, max_events=TAIL_RECORDS)
        return {**row, **outcome_of(() if stored is None else stored.events)}
