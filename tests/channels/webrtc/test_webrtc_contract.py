"""The WebRTC wire keeps the channel contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.channels.contract import ChannelContract, Dial, Refused, dialling, speak, tone
from tests.support.lines import RecordingService, serving, until
from tests.support.webrtc_caller import Refusal, WebRtcCaller
from voice_agent.call.wire import MarkMessage
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

    async def test_a_mark_comes_after_the_audio_before_it(self, dial: Dial) -> None:
        # Messages and audio go separate ways: the mark leaves after the audio, but a far end may read it first.
        call = await dial()
        speak(call.near, tone(0.3))
        call.near.wire.send(MarkMessage("said"))
        await until(lambda: call.far.marks == ["said"])
        await until(lambda: len(call.far.audio) >= len(tone(0.2)))
