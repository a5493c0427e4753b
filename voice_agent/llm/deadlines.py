"""Limits on how long a model may keep a caller waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from voice_agent.llm.protocol import LanguageModel, ModelError, ModelEvent, ModelRequest, SkillCard, prepare


class DeadlinedModel:
    """A model whose silences are limited; passes everything else through.

    ::

        request ──── first_token_s ────▶ token ── between_tokens_s ──▶ token …
                 no token by here: timeout_first_token     no token by here: timeout_between_tokens

    Only events of the model count, not keep-alives of its wire. The time the reader takes between
    two events does not count either. At a timeout the stream is closed before the error is raised.
    """

    def __init__(self, model: LanguageModel, *, first_token_s: float, between_tokens_s: float) -> None:
        self._model = model
        self._first_token_s, self._between_tokens_s = first_token_s, between_tokens_s

    @property
    def name(self) -> str:
        return self._model.name

    async def warm_up(self) -> None:
        await self._model.warm_up()

    async def prepare(self, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        """See `Prepares.prepare`."""
        await prepare(self._model, skills, passages)

    async def aclose(self) -> None:
        await self._model.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel.stream`. Adds the two timeout kinds of `ModelError`."""
        limit, kind = self._first_token_s, "timeout_first_token"
        async with aclosing(self._model.stream(request)) as events:
            while True:
                try:
                    async with asyncio.timeout(limit) as timer:
                        event = await anext(events)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    if not timer.expired():
                        raise ModelError(f"{self.name}: timed out by itself") from error
                    raise ModelError(f"{self.name}: no token within {limit:g} s", kind) from error
                yield event
                limit, kind = self._between_tokens_s, "timeout_between_tokens"
