"""A SIP channel whose calls only record, and telephones to call it with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_network

import pytest

from tests.support.lines import RecordingDesk
from tests.support.sip_caller import SipCaller
from voice_agent.channels.sip.channel import SipChannel
from voice_agent.channels.sip.ports import bound
from voice_agent.channels.sip.setup import SipSetup
from voice_agent.channels.sip.states import Timers

QUICK = Timers(t1=0.02, t2=0.08, t4=0.1)
"""A twenty-fifth of the standard's: 1.3 s until a request or an answer is given up."""


@dataclass
class Exchange:
    desk: RecordingDesk
    channel: SipChannel
    port: int
    serving: asyncio.Task[None]
    callers: list[SipCaller] = field(default_factory=list)

    async def phone(self) -> SipCaller:
        caller = await SipCaller.open(self.port)
        self.callers.append(caller)
        return caller


Open = Callable[[SipSetup], Awaitable[Exchange]]


def setup(**more: object) -> SipSetup:
    return SipSetup(rtp_ports=(22200, 22399), networks=(ip_network("127.0.0.0/8"),), timers=QUICK, **more)  # type: ignore[arg-type]


@pytest.fixture
async def open_exchange() -> AsyncIterator[Open]:
    opened: list[Exchange] = []

    async def start(configured: SipSetup) -> Exchange:
        desk = RecordingDesk()
        channel, sock = SipChannel(desk, configured), bound("127.0.0.1", 0)
        serving = asyncio.create_task(channel.run(sock))
        await asyncio.sleep(0.01)
        opened.append(Exchange(desk, channel, sock.getsockname()[1], serving))
        return opened[-1]

    yield start
    for exchange in opened:
        for caller in exchange.callers:
            await caller.close()
        exchange.serving.cancel()
        await asyncio.wait({exchange.serving}, timeout=3)
        assert exchange.serving.cancelled()
        assert exchange.channel.legs == 0


@pytest.fixture
async def exchange(open_exchange: Open) -> Exchange:
    return await open_exchange(setup())
