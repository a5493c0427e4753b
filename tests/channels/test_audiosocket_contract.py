"""The AudioSocket wire keeps the channel contract, at the rates that Asterisk uses most."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from tests.channels.contract import ChannelContract, Connection, Dial, Refused
from tests.support.audiosocket_caller import AudioSocketCaller
from tests.support.lines import RecordingDesk, until
from voice_agent.channels.audiosocket import AudioSocketChannel


class TestAudioSocket(ChannelContract):
    @pytest.fixture(params=[8000, 16000, 48000])
    async def dial(self, request: pytest.FixtureRequest) -> AsyncIterator[Dial]:
        desk, callers, rate = RecordingDesk(), list[AudioSocketCaller](), request.param
        channel = AudioSocketChannel(desk, desk.tokens, registered_only=True)
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        serving = asyncio.create_task(channel.run(sock))

        async def dial(authenticated: bool = True) -> Connection:
            _, grant = desk.tokens.issue("conversation", {}, 60)
            caller = await AudioSocketCaller.dial(port, grant.identity if authenticated else None, rate)
            callers.append(caller)
            if not authenticated:
                await until(lambda: caller.over)
                assert desk.lines == []
                raise Refused
            return Connection(await desk.next_line(), caller)

        yield dial
        for caller in callers:
            await caller.close()
        serving.cancel()
        await asyncio.wait({serving}, timeout=2)
        assert serving.cancelled()
