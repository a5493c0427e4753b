"""The WebSocket wire keeps the channel contract, at every rate."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Dial, dialling
from tests.support.lines import RecordingService, serving
from tests.support.websocket_caller import WebSocketCaller

KEY = "a-key-of-the-contract-suite"


class TestWebSocket(ChannelContract):
    @pytest.fixture(params=[16000, 8000, 48000])
    async def dial(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dial]:
        monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
        service, rate = RecordingService(), request.param
        async with serving(service) as address:

            async def place(authenticated: bool) -> WebSocketCaller:
                query = f"?rate={rate}" + (f"&token={KEY}" if authenticated else "")
                return await WebSocketCaller.dial(address, query, rate)

            async with dialling(service.calls, place, InvalidStatus) as dial:
                yield dial
