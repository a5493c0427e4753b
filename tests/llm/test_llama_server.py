"""A real model on a real OpenAI-compatible server: tokens stream, and a cancel stops the generation."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.support.llama_server import LlamaServer
from voice_agent.config import LlmOptions
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import Finished, LanguageModel, Message, ModelRequest, TextDelta

pytestmark = pytest.mark.models

LONG = ModelRequest([Message("user", "Write a long story about the sea, in many chapters.")], max_tokens=1500)


def _model(server: LlamaServer) -> LanguageModel:
    return build_model(
        LlmOptions(provider="openai", model="smollm2", base_url=server.base_url, first_token_timeout_s=30)
    )


async def test_tokens_stream_one_by_one(llama_server: LlamaServer) -> None:
    model = _model(llama_server)
    request = ModelRequest([Message("user", "Say hello.")], max_tokens=12, temperature=0)
    events = [event async for event in model.stream(request)]
    words = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(words) > 3
    assert "".join(words).strip()
    assert isinstance(events[-1], Finished)
    assert events[-1].reason in {"stop", "length"}
    await model.aclose()


async def test_cancelling_in_mid_stream_stops_the_generation_on_the_server(llama_server: LlamaServer) -> None:
    model = _model(llama_server)
    await model.warm_up()
    assert await asyncio.to_thread(llama_server.becomes_idle)
    speaking = asyncio.Event()

    async def turn() -> None:
        async with aclosing(model.stream(LONG)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    speaking.set()

    reading = asyncio.ensure_future(turn())
    await asyncio.wait_for(speaking.wait(), 60)
    assert await asyncio.to_thread(llama_server.is_generating)
    reading.cancel()
    await asyncio.wait([reading])
    assert await asyncio.to_thread(llama_server.becomes_idle)
    # Left alone it would have gone on to 1,500 tokens or to the end of its story.
    assert await asyncio.to_thread(llama_server.tokens) < 400
    await model.aclose()


async def test_the_server_answers_the_next_turn_after_a_cancel(llama_server: LlamaServer) -> None:
    model = _model(llama_server)
    stream = model.stream(LONG)
    await anext(stream)
    await stream.aclose()
    # The server has a single slot: this would wait for the whole story if the first stream were still open.
    async with asyncio.timeout(15):
        events = [event async for event in model.stream(ModelRequest([Message("user", "Hi")], max_tokens=3))]
    assert any(isinstance(event, TextDelta) for event in events)
    await model.aclose()
