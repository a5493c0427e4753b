"""Simulated callers by WebRTC against the real server."""

from __future__ import annotations

import asyncio

import pytest

from tests.caller.test_caller_session import tone
from tests.support.lines import RecordingService, serving, until
from voice_agent.audio.frames import FRAME_BYTES
from voice_agent.call.wire import TranscriptMessage
from voice_agent.caller.conversation import Ending, Patience
from voice_agent.caller.session import Session
from voice_agent.caller.webrtc import WebRtcWire, offer_address, without_traces
from voice_agent.caller.wire import ConnectionFailed, Destination
from voice_agent.channels.desk import CallRefused
from voice_agent.config import Channels, WebRtcOptions


def service() -> RecordingService:
    return RecordingService(channels=Channels(webrtc=WebRtcOptions(bind_addresses=("127.0.0.1",))))


async def test_a_call_is_greeted_speaks_and_hangs_up() -> None:
    agent = service()
    async with serving(agent) as address:
        session = Session(WebRtcWire(Destination(f"ws://{address}/ws")), (tone(),), 16000, patience=Patience(0.3, 3, 5))
        async with asyncio.TaskGroup() as group:
            ring = group.create_task(session.run())
            line = await agent.calls.next_line()
            line.wire.send(TranscriptMessage("agent", "Hello.", final=True))
            speech = tone(0.6).pcm.tobytes()
            for at in range(0, len(speech), FRAME_BYTES):
                line.wire.send_audio(speech[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0"))
                await asyncio.sleep(0.02)
            await until(lambda: len(line.inputs.heard) > 40_000)
            for at in range(0, len(speech), FRAME_BYTES):
                line.wire.send_audio(speech[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0"))
                await asyncio.sleep(0.02)
            outcome = await ring
        assert outcome.conversation.ending is Ending.FINISHED
        assert outcome.conversation_id == line.request.conversation_id
        async with asyncio.timeout(5):
            assert await asyncio.shield(line.ended) == "hang_up"


async def test_a_full_service_is_told_with_its_remedy() -> None:
    agent = service()
    agent.calls.refuse = CallRefused("at_capacity", "All lines are busy.")
    async with serving(agent) as address:
        with pytest.raises(ConnectionFailed, match="All lines are busy") as failed:
            await WebRtcWire(Destination(f"http://{address}")).connect()
        assert "max_calls" in failed.value.remedy


async def test_nobody_at_the_address_is_told_with_its_remedy() -> None:
    with pytest.raises(ConnectionFailed, match="Cannot reach"):
        await WebRtcWire(Destination("http://127.0.0.1:9/offer")).connect()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080/offer"),
        ("wss://calls.example/voice/ws", "https://calls.example/voice/offer"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/offer"),
        ("http://127.0.0.1:8080/offer", "http://127.0.0.1:8080/offer"),
    ],
)
def test_offers_go_beside_the_websocket(given: str, address: str) -> None:
    assert offer_address(given) == address


def test_what_a_codec_makes_of_silence_is_silence_again() -> None:
    faint = b"\x01\x00\xfe\xff" * 160
    assert without_traces(faint) == bytes(640)
    assert without_traces(faint + b"\x00\x10") == faint + b"\x00\x10"


def test_what_is_no_address_is_told() -> None:
    with pytest.raises(ConnectionFailed):
        offer_address("tel:123")
