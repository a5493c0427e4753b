"""The WebRTC wire keeps the channel contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.channels.contract import ChannelContract, Dial, Refused, dialling
from tests.support.lines import RecordingService, serving
from tests.support.webrtc_caller import Refusal, WebRtcCaller
from voice_agent.config import Channels, WebRtcOptions

KEY = "a-key-of-the-contract-suite"


class TestWebRtc(ChannelContract):
    @pytest.fixture
    async def dial(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dial]:
        monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
        service = RecordingService(channels=Channels(webrtc=WebRtcOptions(bind_addresses=("127.0.0.1",))))
        async with serving(service) as address:

            async def place(authenticated: bool) -> WebRtcCaller:
                try:
                    return await WebRtcCaller.dial(address, key=KEY if authenticated else "")
                except Refusal as refusal:
                    assert refusal.status == 401
                    raise Refused from None

            async with dialling(service.calls, place) as dial:
                yield dial
