"""The SIP wire keeps the channel contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.channels.contract import ChannelContract, Dial, Refused, dialling
from tests.support.lines import RecordingDesk
from tests.support.sip_caller import SipCaller
from voice_agent.channels.sip.channel import SipChannel
from voice_agent.channels.sip.ports import bound
from voice_agent.channels.sip.setup import SipSetup


class TestSip(ChannelContract):
    @pytest.fixture
    async def dial(self) -> AsyncIterator[Dial]:
        desk = RecordingDesk()
        channel = SipChannel(desk, SipSetup(rtp_ports=(22100, 22199), passwords={"phone": "secret"}))
        sock = bound("127.0.0.1", 0)
        port = sock.getsockname()[1]
        serving = asyncio.create_task(channel.run(sock))
        await asyncio.sleep(0)

        async def place(authenticated: bool) -> SipCaller:
            caller = await SipCaller.open(port)
            response = await caller.invite(user="phone", password="secret" if authenticated else "wrong")
            if response.status != 200:
                await caller.close()
                assert response.status == 401
                raise Refused
            return caller

        async with dialling(desk, place) as dial:
            yield dial
        serving.cancel()
        await asyncio.wait({serving}, timeout=2)
        assert serving.cancelled()
        assert channel.legs == 0
