"""One model call: streamed to the caller as it arrives, raced against cancellation, assembled into tool calls."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from voice_agent.dialogue.cancellation import DEFAULT_GRACE_S, race
from voice_agent.dialogue.turn import Turn
from voice_agent.llm.assemble import ToolCallAssembler
from voice_agent.llm.protocol import LanguageModel, ModelRequest, TextDelta, ToolCall, ToolCallDelta

MAX_REPLY_CHARS = 20_000
"""A reply longer than this is cut: a model that never stops must not talk for ever."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    text: str
    calls: tuple[ToolCall, ...]

    @property
    def is_empty(self) -> bool:
        return not self.text.strip() and not self.calls


async def call_model(model: LanguageModel, request: ModelRequest, turn: Turn, *, speak: bool) -> ModelReply:
    """Run one model call.

    Args:
        speak: Emit text as it arrives; otherwise it is dropped.

    Raises:
        TurnCancelled: The turn was cancelled; nothing the model asked for is done.
        ModelError: The model failed.
    """
    loop = asyncio.get_running_loop()
    turn.model_calls += 1
    turn.marks.setdefault("model_request", loop.time())

    async def consume() -> ModelReply:
        text: list[str] = []
        size = 0
        assembler = ToolCallAssembler()
        async with aclosing(model.stream(request)) as stream:
            async for event in stream:
                turn.marks.setdefault("first_token", loop.time())
                if isinstance(event, TextDelta):
                    text.append(event.text)
                    size += len(event.text)
                    if speak:
                        turn.reply.delta(event.text)
                    if size > MAX_REPLY_CHARS:
                        break
                elif isinstance(event, ToolCallDelta):
                    assembler.add(event)
        return ModelReply("".join(text), assembler.calls())

    try:
        done = await race(consume(), turn.cancel, name="model", grace_s=DEFAULT_GRACE_S)
    finally:
        turn.reply.end()
    # A reply that was finished only inside the grace window belongs to a turn that no longer exists.
    turn.cancel.check()
    return done.value
