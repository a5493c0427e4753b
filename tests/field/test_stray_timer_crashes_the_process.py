"""A library's timer fired minutes after its connection had ended and took the process with it.

Right: what nobody awaits is logged once, under its call where that can be known, and every other call goes on.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.channels.contract import tone
from tests.support.lines import RecordingService, serving, until
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.telemetry.logging import bind


async def test_a_stray_timer_is_logged_and_the_other_calls_go_on(caplog: pytest.LogCaptureFixture) -> None:
    service = RecordingService()

    def retry_after_the_end() -> None:
        raise asyncio.InvalidStateError("invalid state")

    async with serving(service) as address:
        caller = await WebSocketCaller.dial(address)
        line = await service.calls.next_line()
        with bind(call="the-other-call"):
            asyncio.get_running_loop().call_later(0.01, retry_after_the_end)
        await until(lambda: caplog.records)
        await caller.speak(tone(0.1))
        await until(lambda: len(line.inputs.heard) == len(tone(0.1)))
        await caller.close()
    [record] = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert record.name == "voice_agent.server.serving"
    assert "InvalidStateError" in record.getMessage()


async def test_a_task_that_nobody_awaits_is_logged_by_name(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("left alone")

    async with serving(RecordingService()):
        task = asyncio.get_running_loop().create_task(fail(), name="call-7.retry")
        await asyncio.sleep(0)
        del task
        await until(lambda: caplog.records)
    assert "call-7.retry" in caplog.records[0].getMessage()
