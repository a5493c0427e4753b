"""The embedded model behind the `LanguageModel` protocol."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date

from voice_agent.diagnostics import RemediableError
from voice_agent.llm.embedded.answers import Passage, sentence_lines
from voice_agent.llm.embedded.choice import candidate
from voice_agent.llm.embedded.minilm import MiniLm
from voice_agent.llm.embedded.moves import Decision
from voice_agent.llm.embedded.policy import decide
from voice_agent.llm.protocol import Finished, ModelError, ModelEvent, ModelRequest, SkillCard, TextDelta, ToolCallDelta

MAX_PREPARED = 400
"""Sentences read beforehand: a few seconds of one core. The rest is read when it is first asked about."""
WARM_UP_SENTENCE = "What are your opening hours?"


class EmbeddedModel:
    """Decides on one worker thread of its own, so that the event loop never waits for a sentence vector.

    Args:
        encoder: The sentence encoder; shared by all calls.
        today: The date that "tomorrow" starts from.
    """

    def __init__(self, encoder: MiniLm | None = None, *, today: Callable[[], date] = date.today) -> None:
        self._encoder = encoder or MiniLm()
        self._today = today
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedded-llm")

    @property
    def name(self) -> str:
        return "embedded"

    async def warm_up(self) -> None:
        """Load the weights and compute a first vector.

        Raises:
            RemediableError: A package is missing or its files are not the pinned ones.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._encoder.encode, WARM_UP_SENTENCE)

    async def prepare(self, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        """Compute the vectors that the first callers would otherwise wait for: 5 to 15 ms a sentence.

        At most `MAX_PREPARED` sentences, the skills' first. One job each, so that a caller's request
        waits for a sentence and not for all of them.
        """
        lines = [line for card in skills for line in candidate(card.id, card.description, card.examples).lines]
        texts = [line for title, text in passages for line in sentence_lines(Passage(title, text))]
        loop = asyncio.get_running_loop()
        for line in list(dict.fromkeys([*lines, *texts]))[:MAX_PREPARED]:
            await loop.run_in_executor(self._thread, self._encoder.encode, line)

    async def aclose(self) -> None:
        """Let the thread end; what it is computing is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel.stream`. Text comes word by word; a cancelled decision is dropped."""
        loop = asyncio.get_running_loop()
        try:
            decision = await loop.run_in_executor(self._thread, self._decide, request)
        except RemediableError as error:
            raise ModelError(f"{self.name}: {error}", "configuration") from error
        except RuntimeError as error:
            # The thread pool says so when it was shut down before.
            raise ModelError(f"{self.name}: {error}") from error
        for word in re.findall(r"\s*\S+", decision.text):
            yield TextDelta(word)
            await asyncio.sleep(0)
        for index, (name, arguments) in enumerate(decision.calls):
            yield ToolCallDelta(index, f"call_{len(request.messages)}_{index}", name, json.dumps(arguments))
        yield Finished("tool_calls" if decision.calls else "stop")

    def _decide(self, request: ModelRequest) -> Decision:
        return decide(request, self._encoder.similarities, self._today())
