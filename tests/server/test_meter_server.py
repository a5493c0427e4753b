"""The benchmark profile: the ordinary service, with the greeting, the tone and the figures the meter expects."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.channels.contract import level
from tests.support.lines import until
from tests.support.websocket_caller import WebSocketCaller

pytestmark = pytest.mark.service
SERVER = Path(__file__).parents[2] / "scripts/bench/meter_server.py"
GREETING = "Hello, this is the front desk. How can I help you today?"
REPLY = "Sure, I can help you with that. What day would you like to come in?"


@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), "--port", str(port), "--stub"])
    try:
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(15) == 0


async def test_a_stub_call_is_greeted_with_a_tone_and_answered_with_fifteen_words(address: str) -> None:
    caller = await WebSocketCaller.dial(address)
    await until(lambda: any(m["text"] == GREETING for m in caller.of("transcript")))
    await until(lambda: len(caller.audio) >= 32000)
    spectrum = np.abs(np.fft.rfft(np.frombuffer(caller.audio[:32000], "<i2").astype(float)))
    assert int(spectrum.argmax()) == 300
    assert level(caller.audio[:32000]) > 3000
    await caller.say(type="text", text="hello there")
    await until(lambda: any(m["text"].strip() == REPLY for m in caller.of("transcript") if m["role"] == "agent"))
    await caller.close()


async def test_stats_come_back_to_where_they_were_after_calls(address: str) -> None:
    async with httpx.AsyncClient(base_url=f"http://{address}") as client:
        before = (await client.get("/stats")).json()
        for _ in range(3):
            caller = await WebSocketCaller.dial(address)
            await until(lambda caller=caller: len(caller.audio) > 3200)
            await caller.vanish()
        for _ in range(50):
            after = (await client.get("/stats")).json()
            if after["tasks"] <= before["tasks"]:
                break
            await asyncio.sleep(0.1)
    assert after["tasks"] <= before["tasks"]
    assert set(after) == {"tasks", "objs"}
