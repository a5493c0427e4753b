"""Calls by WebRTC through the real server: offers, refusals, ends in every order, and what is left after them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from aiortc import RTCPeerConnection

from tests.support.lines import RecordingService, serving, until
from tests.support.webrtc_caller import Refusal, WebRtcCaller
from voice_agent.call.wire import EventMessage, MetricsMessage, TranscriptMessage
from voice_agent.channels.desk import CallRefused
from voice_agent.config import Channels, IceServer, WebRtcOptions


def channels(**options: object) -> Channels:
    return Channels(webrtc=WebRtcOptions(bind_addresses=("127.0.0.1",), **options))  # type: ignore[arg-type]


@pytest.fixture
async def service() -> RecordingService:
    return RecordingService(channels=channels())


@pytest.fixture
async def address(service: RecordingService) -> AsyncIterator[str]:
    async with serving(service) as address:
        yield address


async def post(address: str, **fields: object) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(f"http://{address}/offer", json=fields)


async def test_an_offer_is_answered_with_the_call_and_its_conversation(service: RecordingService, address: str) -> None:
    caller = await WebRtcCaller.dial(address, conversation="me", events=True)
    line = await service.calls.next_line()
    assert (caller.conversation, line.request.conversation_id, line.request.events) == ("me", "me", True)
    assert caller.call_id
    await until(lambda: caller.of("ready"))
    assert caller.of("ready") == [{"type": "ready", "conversation": "me", "rate": 48000}]
    await caller.close()


async def test_what_is_said_before_the_data_channel_opens_is_not_lost(service: RecordingService, address: str) -> None:
    caller = WebRtcCaller()
    await caller.offer(address, metrics=True)
    line = await service.calls.next_line()
    line.wire.send(TranscriptMessage("agent", "Hello.", final=True))
    line.wire.send(MetricsMessage("t1", {}))
    line.wire.send(EventMessage({"not": "asked for"}))
    await until(lambda: len(caller.messages) == 3)
    assert [m["type"] for m in caller.messages] == ["ready", "transcript", "metrics"]
    await caller.close()


async def test_typed_words_and_unusable_messages_are_told_apart(service: RecordingService, address: str) -> None:
    caller = await WebRtcCaller.dial(address, states=True)
    line = await service.calls.next_line()
    assert line.wire.traits.follows_state
    caller.channel.send("hello")
    caller.channel.send(b"\x00\x01")
    await caller.say(type="sing")
    await caller.say(type="text", text=" When are you open? ")
    await until(lambda: line.inputs.texts)
    assert line.inputs.texts == ["When are you open?"]
    await until(lambda: len(caller.of("error")) == 3)
    assert [m["code"] for m in caller.of("error")] == ["not_json", "not_json", "unknown_message"]
    await caller.close()


async def test_a_flood_of_messages_ends_the_call(service: RecordingService, address: str) -> None:
    caller = await WebRtcCaller.dial(address)
    line = await service.calls.next_line()
    for _ in range(40):
        for _ in range(50):
            await caller.say(type="dtmf", digit="1")
        await asyncio.wait({line.ended}, timeout=0.05)
        if line.ended.done():
            break
    async with asyncio.timeout(10):
        assert await asyncio.shield(line.ended) == "disconnected"
    assert len(line.inputs.keys) < 800
    await caller.close()


@pytest.mark.parametrize(
    "sdp", ["v=0\r\nm=audio 9 X 1\r\na=rtpmap:1 opus/48000/2\r\n", "v=0\r\nm=audio x opus/48000/2"]
)
async def test_a_malformed_description_is_one_clear_error(service: RecordingService, address: str, sdp: str) -> None:
    response = await post(address, sdp=sdp + "\r\na=rtpmap:1 opus/48000/2\r\n", type="offer")
    assert (response.status_code, response.json()["code"]) == (422, "bad_sdp")
    assert service.calls.lines == []


async def test_an_offer_that_lacks_any_one_line_is_answered_or_refused_and_never_a_fault(
    service: RecordingService, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = RTCPeerConnection()
    connection.addTransceiver("audio")
    connection.createDataChannel("voice-agent")
    await connection.setLocalDescription(await connection.createOffer())
    lines = connection.localDescription.sdp.splitlines()
    statuses = set()
    async with httpx.AsyncClient(base_url=f"http://{address}", timeout=20) as client:
        for left_out in range(len(lines)):
            sdp = "\r\n".join(lines[:left_out] + lines[left_out + 1 :]) + "\r\n"
            response = await client.post("/offer", json={"sdp": sdp, "type": "offer"})
            statuses.add(response.status_code)
            if response.status_code == 200:
                # It may be over already, where nothing can come of it.
                await client.delete("/call/" + response.json()["call_id"])
    await connection.close()
    assert statuses == {200, 422}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_body_that_is_too_big_is_refused(address: str) -> None:
    response = await post(address, sdp="v=0" + "x" * 70_000, type="offer")
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


async def test_a_full_service_says_so_before_anything_is_opened(service: RecordingService, address: str) -> None:
    service.calls.refuse = CallRefused("at_capacity", "All lines are busy.")
    with pytest.raises(Refusal) as refusal:
        await WebRtcCaller.dial(address)
    assert refusal.value.status == 503
    assert refusal.value.body == {"code": "at_capacity", "message": "All lines are busy."}


async def test_pages_of_other_sites_and_callers_without_the_key_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", "a-key-of-the-webrtc-tests")
    async with serving(RecordingService(channels=channels())) as address, httpx.AsyncClient() as client:
        for method, path in (("POST", "/offer"), ("DELETE", "/call/x"), ("GET", "/webrtc/config")):
            url = f"http://{address}{path}"
            assert (await client.request(method, url)).status_code == 401
            headers = {"authorization": "Bearer a-key-of-the-webrtc-tests", "origin": "http://elsewhere.example"}
            assert (await client.request(method, url, headers=headers)).status_code == 403


async def test_the_page_is_told_the_ice_servers_with_their_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURN_SECRET", "s3cret")
    servers = (
        IceServer(urls=("stun:192.0.2.1",)),
        IceServer(urls=("turn:192.0.2.1",), username="agent", credential_env="TURN_SECRET"),
    )
    async with serving(RecordingService(channels=channels(ice_servers=servers))) as address, httpx.AsyncClient() as web:
        assert (await web.get(f"http://{address}/webrtc/config")).json() == {
            "iceServers": [
                {"urls": ["stun:192.0.2.1"]},
                {"urls": ["turn:192.0.2.1"], "username": "agent", "credential": "s3cret"},
            ]
        }


async def test_no_server_outside_is_asked_by_default(address: str) -> None:
    async with httpx.AsyncClient() as web:
        assert (await web.get(f"http://{address}/webrtc/config")).json() == {"iceServers": []}
    caller = await WebRtcCaller.dial(address)
    assert " typ srflx" not in caller.answer
    assert " typ relay" not in caller.answer
    await caller.close()


async def test_a_channel_that_is_off_is_not_there() -> None:
    async with serving(RecordingService(channels=channels(enabled=False))) as address:
        response = await post(address, sdp="v=0\r\nm=audio 9 X 1\r\na=rtpmap:1 opus/48000/2\r\n", type="offer")
        assert (response.status_code, response.json()["code"]) == (404, "channel_off")


async def test_where_the_packages_are_missing_the_answer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voice_agent.channels.webrtc.channel._load", lambda options: None)
    async with serving(RecordingService(channels=channels())) as address:
        response = await post(address, sdp="v=0\r\nm=audio 9 X 1\r\na=rtpmap:1 opus/48000/2\r\n", type="offer")
        assert (response.status_code, response.json()["code"]) == (501, "webrtc_missing")
        assert "voice-agent[webrtc]" in response.json()["message"]


async def test_a_token_opens_its_own_call_and_ends_no_other(service: RecordingService, address: str) -> None:
    token, _ = service.tokens.issue("their-own", {}, 60)
    grant_less = await WebRtcCaller.dial(address)
    with pytest.raises(Refusal) as refusal:
        await WebRtcCaller.dial(address, key=token, conversation="another")
    assert refusal.value.body["code"] == "bad_conversation"
    caller = await WebRtcCaller.dial(address, key=token)
    assert caller.conversation == "their-own"
    assert (await caller.request("DELETE", f"/call/{grant_less.call_id}")).status_code == 404
    assert (await caller.request("DELETE", f"/call/{caller.call_id}")).status_code == 204
    await caller.close()
    await grant_less.close()


async def test_a_caller_who_has_lost_its_connection_takes_its_call_up_on_another(
    service: RecordingService, address: str
) -> None:
    lost = await WebRtcCaller.dial(address, conversation="c1")
    first = await service.calls.next_line()
    stranger = await WebRtcCaller.dial(address, conversation="c2", resumes=lost.call_id)
    await service.calls.next_line()
    assert not first.ended.done(), "another conversation does not end it"
    again = await WebRtcCaller.dial(address, conversation="c1", resumes=lost.call_id, states=True)
    second = await service.calls.next_line()
    assert await asyncio.wait_for(first.ended, 2) == "disconnected"
    assert second.wire.traits.follows_state
    for caller in (lost, stranger, again):
        await caller.close()


async def test_a_call_is_not_taken_over_by_the_holder_of_another_token(service: RecordingService, address: str) -> None:
    own, _ = service.tokens.issue("c1", {}, 60)
    other, _ = service.tokens.issue("c1", {}, 60)
    caller = await WebRtcCaller.dial(address, key=own)
    line = await service.calls.next_line()
    thief = await WebRtcCaller.dial(address, key=other, resumes=caller.call_id)
    await service.calls.next_line()
    assert not line.ended.done()
    await thief.close()
    await caller.close()
