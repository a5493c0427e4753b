"""Abandoned streams leave the upstream connection open.

Symptom: after barge-ins the pool of connections runs dry and the provider keeps generating words
that nobody hears. Right: each cancelled turn closes its own response, and the provider sees it.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from tests.support.completion_server import HANG, completion_server, text
from voice_agent.config import LlmOptions
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import Message, ModelRequest

BARGE_INS = 12


async def test_after_many_barge_ins_the_server_has_seen_as_many_hang_ups_and_no_connection_is_open() -> None:
    async with completion_server(*[[text("Your "), text("balance "), HANG]] * BARGE_INS) as server:
        model = build_model(LlmOptions(provider="openai", model="m", base_url=server.base_url))
        await model.warm_up()

        async def turn(spoken: asyncio.Event) -> None:
            async with aclosing(model.stream(ModelRequest([Message("user", "hello")]))) as events:
                async for _ in events:
                    spoken.set()

        for _ in range(BARGE_INS):
            spoken = asyncio.Event()
            reading = asyncio.ensure_future(turn(spoken))
            await asyncio.wait_for(spoken.wait(), 10)
            reading.cancel()
            await asyncio.wait([reading])
            # The deadline is 200 ms; the rest is room for a loaded machine.
            await asyncio.wait_for(server.exchanges[-1].gone.wait(), 1.5)
        assert [exchange.hung_up_at is not None for exchange in server.exchanges] == [True] * BARGE_INS
        assert server.open_connections == 0
        await model.aclose()
