"""Whoever holds up the loop is named, and nobody else."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time

import pytest

from tests.support.lines import until
from voice_agent.call.clock import MediaClock
from voice_agent.service import stall_watch
from voice_agent.service.stall_watch import StallWatch


@pytest.fixture(autouse=True)
def _sharp_eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall_watch, "LOOK_S", 0.05)


async def sleepy_tool() -> None:
    time.sleep(0.6)  # noqa: ASYNC251 - the fault that is to be found


async def patient_tool() -> None:
    await asyncio.sleep(0.4)


async def tool_in_a_library() -> None:
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.6)"], check=True)  # noqa: ASYNC221


@pytest.mark.parametrize("work", [sleepy_tool, tool_in_a_library])
async def test_a_tool_that_blocks_the_loop_is_named_once(work, caplog: pytest.LogCaptureFixture) -> None:  # type: ignore[no-untyped-def]
    clock = MediaClock()
    async with clock:
        with StallWatch(clock):
            await until(lambda: clock.now)
            await work()
            await until(lambda: caplog.records)
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert f"{__file__}:" in record.getMessage()
    assert f"in {work.__name__}" in record.getMessage()


async def test_waiting_is_no_stall(caplog: pytest.LogCaptureFixture) -> None:
    clock = MediaClock()
    async with clock:
        with StallWatch(clock) as watch:
            await patient_tool()
    await until(lambda: not watch._thread.is_alive())
    assert not caplog.records
