"""Recall that takes as long as it is told, in virtual or real time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from voice_agent.recall.entries import Found, Kind, Who


class SlowRecalls:
    """Implements `Recalls`: every question takes ``delay_s`` and finds one document."""

    latest, prompt_tokens, k = 1, 600, 5
    fills_prompts, knows_documents, procedures_above = True, False, None

    def __init__(self, delay_s: float, budget_s: float) -> None:
        self.delay_s, self.budget_s = delay_s, budget_s
        self.running = self.asked = 0

    def has_references(self, owner: str) -> bool:
        return False

    async def recall(self, query: str, who: Who) -> Sequence[Found]:
        self.asked += 1
        self.running += 1
        try:
            await asyncio.sleep(self.delay_s)
        finally:
            self.running -= 1
        return [Found(Kind.DOCUMENT, "a.md", "", "The router blinks green.", 0.9)]

    async def search(self, query: str, owners: Sequence[str], limit: int) -> Sequence[Found] | None:
        return None

    async def fitting(self, query: str, procedures: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
        return None
