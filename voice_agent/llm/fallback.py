"""Which model is asked next when one fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from voice_agent.llm.protocol import LanguageModel, ModelError, ModelEvent, ModelRequest, SkillCard, prepare
from voice_agent.telemetry.metrics import ENGINE_FAILURES

log = logging.getLogger(__name__)

RETRY_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model and how often it is asked again after a failure."""

    model: LanguageModel
    retries: int = 1


class FallbackModel:
    """Asks its candidates in order until one gives a first event; from then on it is committed.

    ::

        first ──x (retry_pause_s) first ──x  second ──x  …  all failed: ModelError of the last
        first ──token──token──x              ModelError: what was said cannot be taken back

    A retry goes to the same model, at most ``Candidate.retries`` times. Two failures are not
    retried, since waiting again would not help the caller: a wrong configuration, and a timeout
    while there is another candidate left.
    """

    def __init__(self, candidates: Sequence[Candidate], *, retry_pause_s: float = RETRY_PAUSE_S) -> None:
        if not candidates:
            raise ValueError("a fallback chain needs at least one model")
        self._candidates = tuple(candidates)
        self._retry_pause_s = retry_pause_s

    @property
    def name(self) -> str:
        """The name of the model that is asked first."""
        return self._candidates[0].model.name

    async def warm_up(self) -> None:
        """Warm every candidate, so that a fallback is not slow when it is needed."""
        for candidate in self._candidates:
            await candidate.model.warm_up()

    async def prepare(self, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        """See `Prepares.prepare`."""
        for candidate in self._candidates:
            await prepare(candidate.model, skills, passages)

    async def aclose(self) -> None:
        for candidate in self._candidates:
            await candidate.model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel.stream`."""
        last: ModelError | None = None
        for position, candidate in enumerate(self._candidates):
            others_left = position + 1 < len(self._candidates)
            for attempt in range(candidate.retries + 1):
                if attempt:
                    await asyncio.sleep(self._retry_pause_s)
                committed = False
                try:
                    async with aclosing(candidate.model.stream(request)) as events:
                        async for event in events:
                            committed = True
                            yield event
                    return
                except ModelError as error:
                    ENGINE_FAILURES.labels(engine="llm").inc()
                    if committed:
                        raise
                    log.warning("%s failed before its first token (%s): %s", candidate.model.name, error.kind, error)
                    last = error
                    if not _worth_a_retry(error, others_left):
                        break
        assert last is not None
        raise last


def _worth_a_retry(error: ModelError, others_left: bool) -> bool:
    if error.kind == "configuration":
        return False
    return not (error.kind == "timeout_first_token" and others_left)
