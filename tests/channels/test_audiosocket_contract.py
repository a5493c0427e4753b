"""The AudioSocket wire keeps the channel contract, at the rates that Asterisk uses most."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from tests.channels.contract import ChannelContract, Dial, Refused, dialling
from tests.support.audiosocket_caller import AudioSocketCaller
from tests.support.lines import RecordingDesk, until
from voice_agent.channels.audiosocket import AudioSocketChannel


class TestAudioSocket(ChannelContract):
    @pytest.fixture(params=[8000, 16000, 48000])
    async def dial(self, request: pytest.FixtureRequest) -> AsyncIterator[Dial]:
        desk, rate = RecordingDesk(), request.param
        channel = AudioSocketChannel(desk, desk.tokens, registered_only=True)
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        serving = asyncio.create_task(channel.run(sock))

        async def place(authenticated: bool) -> AudioSocketCaller:
            _, grant = desk.tokens.issue("conversation", {}, 60)
            caller = await AudioSocketCaller.dial(port, grant.identity if authenticated else None, rate)
            if not authenticated:
                await until(lambda: caller.over)
                await caller.close()
                raise Refused
            return caller

        async with dialling(desk, place) as dial:
            yield dial
        serving.cancel()
        await asyncio.wait({serving}, timeout=2)
        assert serving.cancelled()
