"""The WebSocket wire keeps the channel contract, at every rate."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Connection, Dial, Refused
from tests.support.lines import RecordingService, serving
from tests.support.websocket_caller import WebSocketCaller

KEY = "a-key-of-the-contract-suite"


class TestWebSocket(ChannelContract):
    @pytest.fixture(params=[16000, 8000, 48000])
    async def dial(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dial]:
        monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
        service, callers, rate = RecordingService(), [], request.param
        async with serving(service) as address:

            async def dial(authenticated: bool = True) -> Connection:
                query = f"?rate={rate}" + (f"&token={KEY}" if authenticated else "")
                try:
                    caller = await WebSocketCaller.dial(address, query, rate)
                except InvalidStatus:
                    assert service.calls.lines == []
                    raise Refused from None
                callers.append(caller)
                return Connection(await service.calls.next_line(), caller)

            yield dial
            for caller in callers:
                await caller.close()
