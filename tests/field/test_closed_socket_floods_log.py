"""Sending on a WebSocket whose caller had just gone raised, and filled the log with errors.

Right: a closed socket is the end of the call, once, however often and in whatever state it is noticed.
"""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from tests.channels.contract import ended, speak, tone
from tests.support.lines import RecordingService, serving
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.call.wire import TranscriptMessage


async def test_forty_callers_who_leave_at_any_instant_end_once_each_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    service, dice = RecordingService(), random.Random(92)

    async def call(address: str, number: int) -> None:
        caller = await WebSocketCaller.dial(address, f"?conversation=c{number}")
        await asyncio.sleep(dice.random() * 0.05)
        await (caller.vanish() if number % 2 else caller.close())

    async def talk() -> None:
        while True:
            for line in service.calls.lines:
                speak(line, tone(0.04))
                line.wire.clear()
                line.wire.send(TranscriptMessage("agent", "Hello", final=False))
            await asyncio.sleep(0)

    async with serving(service) as address, asyncio.TaskGroup() as group:
        talking = group.create_task(talk())
        await asyncio.gather(*(call(address, number) for number in range(40)))
        reasons = [await ended(line) for line in list(service.calls.lines)]
        talking.cancel()
    assert reasons == ["disconnected"] * len(reasons)
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
