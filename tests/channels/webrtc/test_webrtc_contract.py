"""The WebRTC wire keeps the channel contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.channels.contract import ChannelContract, Connection, Dial, Refused
from tests.support.lines import RecordingService, serving
from tests.support.webrtc_caller import Refusal, WebRtcCaller
from voice_agent.config import Channels, WebRtcOptions

KEY = "a-key-of-the-contract-suite"


class TestWebRtc(ChannelContract):
    @pytest.fixture
    async def dial(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dial]:
        monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
        service = RecordingService(channels=Channels(webrtc=WebRtcOptions(bind_addresses=("127.0.0.1",))))
        callers: list[WebRtcCaller] = []
        async with serving(service) as address:

            async def dial(authenticated: bool = True) -> Connection:
                try:
                    caller = await WebRtcCaller.dial(address, key=KEY if authenticated else "")
                except Refusal as refusal:
                    assert refusal.status == 401
                    assert service.calls.lines == []
                    raise Refused from None
                callers.append(caller)
                return Connection(await service.calls.next_line(), caller)

            yield dial
            for caller in callers:
                await caller.close()
