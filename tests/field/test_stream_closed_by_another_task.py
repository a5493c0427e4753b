"""Closing a model stream from another task raises "already running".

Symptom: a controller calls ``aclose()`` on a stream that a second task is reading; Python refuses,
and the response stays open. Right: whoever wants it closed cancels the task that reads; that task
closes in its ``finally``, even when it is cancelled again meanwhile.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.support.completion_server import HANG, completion_server, text
from voice_agent.config import LlmOptions
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import Message, ModelRequest


async def test_closing_from_outside_does_no_harm_and_cancelling_the_reader_closes() -> None:
    async with completion_server([text("one"), HANG]) as server:
        model = build_model(LlmOptions(provider="openai", model="m", base_url=server.base_url))
        stream = model.stream(ModelRequest([Message("user", "hello")]))
        speaking = asyncio.Event()

        async def read() -> None:
            try:
                async for _ in stream:
                    speaking.set()
            finally:
                await stream.aclose()

        reader = asyncio.ensure_future(read())
        await asyncio.wait_for(speaking.wait(), 10)
        # Python's own refusal; three at once, as when hang-up, timeout and barge-in meet.
        results = await asyncio.gather(*(stream.aclose() for _ in range(3)), return_exceptions=True)
        assert all(isinstance(result, RuntimeError) and "already running" in str(result) for result in results)
        assert not reader.done()
        assert server.open_connections == 1

        reader.cancel()
        await asyncio.sleep(0)
        reader.cancel()
        await asyncio.wait_for(server.exchanges[0].gone.wait(), 1.5)
        with pytest.raises(asyncio.CancelledError):
            await reader
        await model.aclose()
        assert server.open_connections == 0
