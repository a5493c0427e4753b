"""Calls that were prepared by an application: what it knows reaches the conversation, and only its caller gets in."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.fakes.wire import FakeWire
from tests.support.lines import serving, until
from tests.support.small_service import GREETING, small_service
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.channels.desk import CallRefused, CallRequest
from voice_agent.channels.tokens import TokenRefused
from voice_agent.service.service import Service
from voice_agent.telemetry.logging import configure

KEY = "the-only-key-that-fits"
FILES = {"memory.yml": "plan: {type: text, seed: true}\nverified: {type: bool}\n"}


class Line:
    """The service and an application that has its key."""

    def __init__(self, service: Service, address: str, client: httpx.AsyncClient) -> None:
        self.service, self.address, self._client = service, address, client

    async def prepare(self, **asked: Any) -> httpx.Response:
        return await self._client.post("/v1/calls", json=asked)

    async def token(self, **asked: Any) -> str:
        return str((await self.prepare(**asked)).json()["token"])

    async def dial(self, token: str, more: str = "") -> WebSocketCaller:
        return await WebSocketCaller.dial(self.address, f"?token={token}{more}")

    async def refused(self, token: str) -> tuple[int, bytes]:
        with pytest.raises(InvalidStatus) as caught:
            await self.dial(token)
        return caught.value.response.status_code, caught.value.response.body or b""


@pytest.fixture
async def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    service = small_service(tmp_path, files=FILES, model=["One.", "Two."])
    headers = {"Authorization": f"Bearer {KEY}"}
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}", headers=headers) as client:
        await until(lambda: not service.missing)
        yield Line(service, address, client)


async def test_what_the_application_knows_reaches_memory_and_the_caller_is_found_by_it(line: Line) -> None:
    token = await line.token(metadata={"plan": "family"}, user_id="ann", conversation="c1")
    caller = await line.dial(token, "&events=1")
    await until(lambda: any(m["text"] == GREETING for m in caller.of("transcript")))
    (written,) = [m["event"]["memory_set"] for m in caller.of("event") if "memory_set" in m["event"]]
    assert (written["key"], written["value_json"], written["source"]) == ("plan", '"family"', "seed")
    await caller.close()
    await until(lambda: not line.service.calls.registry.is_live("c1"))
    await line.service.store.flush(2)
    page = await line.service.store.conversations(caller="ann")
    assert [found.id for found in page.conversations] == ["c1"]


async def test_metadata_that_is_no_seed_is_refused_and_nothing_is_stored(line: Line) -> None:
    for metadata, tells in (({"plann": "x"}, "plann"), ({"verified": True}, "seed: true")):
        answer = await line.prepare(metadata=metadata)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_metadata")
        assert tells in answer.json()["message"]
        assert "plan, user_id, environment" in answer.json()["message"]
    assert len(line.service.tokens) == 0


async def test_a_token_is_worth_one_call(line: Line) -> None:
    token = await line.token(conversation="c1")
    caller = await line.dial(token)
    await until(lambda: caller.of("ready"))
    assert caller.of("ready")[0]["conversation"] == "c1"
    await caller.hang_up()
    await until(lambda: caller.over and not line.service.calls.registry.is_live("c1"))
    status, body = await line.refused(token)
    assert (status, b'"token_used"' in body) == (403, True)


async def test_a_dropped_caller_comes_back_with_the_same_token_and_is_not_greeted_again(line: Line) -> None:
    token = await line.token()
    first = await line.dial(token)
    await first.say(type="text", text="hello")
    await until(lambda: any(m["text"] == "One." for m in first.of("transcript")))
    await first.vanish()
    second = await line.dial(token)
    await second.say(type="text", text="me again")
    await until(lambda: any(m["text"] == "Two." for m in second.of("transcript")))
    assert all(m["text"] != GREETING for m in second.of("transcript"))
    await second.close()


async def test_an_offer_whose_media_never_comes_leaves_the_token_unused(line: Line) -> None:
    answer = (await line.prepare(conversation="c1")).json()
    grant = line.service.tokens.find(answer["token"])
    ids = []

    async def connect(call_id: str) -> bool:
        ids.append(call_id)
        return False

    for _ in range(2):
        with pytest.raises(CallRefused, match="did not come through"):
            await line.service.calls.take(CallRequest("c1", "webrtc", grant=grant, connect=connect), FakeWire())
    # The call that comes about in the end is the one that the application was told of.
    assert ids == [answer["call_id"]] * 2
    caller = await line.dial(answer["token"])
    await until(lambda: caller.of("ready"))
    assert [call.call_id for call in line.service.calls.registry.active] == [answer["call_id"]]
    await caller.hang_up()


async def test_a_token_resumes_for_as_long_as_the_channel_of_its_call_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    settings = (
        "channels: {websocket: {turn_taking: {resume_window_s: 0}}, webrtc: {turn_taking: {resume_window_s: 60}}}\n"
    )
    service = small_service(tmp_path, settings=settings, model=["One."])
    async with serving(service):
        await until(lambda: not service.missing)
        for channel, resumes in (("websocket", False), ("webrtc", True)):
            token, grant = service.tokens.issue(channel, {}, 60)
            await service.calls.take(CallRequest(channel, channel, grant=grant), FakeWire(0.2, leave="disconnected"))
            if resumes:
                assert service.tokens.find(token) is grant
            else:
                with pytest.raises(TokenRefused, match="over"):
                    service.tokens.find(token)


async def test_two_connections_with_one_token_are_one_call(line: Line) -> None:
    token = await line.token()
    first = await line.dial(token)
    await until(lambda: first.of("ready"))
    dialling = asyncio.create_task(line.dial(token))
    # Whoever speaks, or sends the silence of an open microphone, is there: nobody takes that call.
    for _ in range(75):
        await first.speak(bytes(640))
        await asyncio.sleep(0.02)
    second = await dialling
    await until(lambda: second.over)
    assert [m["code"] for m in second.of("error")] == ["conversation_busy"]
    assert not first.over
    await first.hang_up()
    await until(lambda: first.over)


async def test_a_connection_with_a_token_takes_over_one_from_which_nothing_comes(line: Line) -> None:
    token = await line.token()
    first = await line.dial(token)
    await until(lambda: first.of("ready"))
    second = await line.dial(token)
    await until(lambda: second.of("ready") and first.over)
    assert [m["reason"] for m in first.of("hangup")] == ["superseded"]
    assert line.service.calls.registry.is_live(second.of("ready")[0]["conversation"])
    await second.close()


async def test_another_conversation_than_the_tokens_is_not_opened(line: Line) -> None:
    caller = await line.dial(await line.token(conversation="c1"), "&conversation=c2")
    await until(lambda: caller.over)
    assert (caller.of("error")[0]["code"], caller.closed_with) == ("bad_conversation", 1008)
    assert line.service.calls.registry.active == ()


async def test_a_token_is_good_for_nothing_but_its_call_and_never_logged(line: Line) -> None:
    log = io.StringIO()
    configure("debug", stream=log)
    logging.getLogger("uvicorn").setLevel(logging.DEBUG)
    token = await line.token(user_id="ann-from-oslo", metadata={"plan": "family"})
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://{line.address}", headers=headers) as holder:
        for method, path in (("POST", "/v1/calls"), ("GET", "/metrics"), ("POST", "/v1/conversations/c1/messages")):
            answer = await holder.request(method, path, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "not_with_token")
    caller = await line.dial(token)
    await until(lambda: caller.of("ready"))
    await caller.close()
    await line.refused(token[:-2])
    logging.getLogger("uvicorn").setLevel(logging.NOTSET)
    lines = log.getvalue()
    assert "ERROR" not in lines, "a stranger at the door is no fault of ours"
    assert "call begins" in lines
    assert "/ws" in lines
    assert "connection refused: bad_token" in lines
    secret = token.rsplit("_", 1)[-1][:-2]
    assert not [what for what in (secret, "ann-from-oslo", "family") if what in lines]


async def test_on_loopback_without_a_key_nothing_needs_a_token_and_metadata_still_travels_in_one(
    tmp_path: Path,
) -> None:
    service = small_service(tmp_path, files=FILES)
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        await until(lambda: not service.missing)
        plain = await WebSocketCaller.dial(address)
        await until(lambda: plain.of("ready"))
        await plain.close()
        made = (await client.post("/v1/calls", json={"metadata": {"plan": "solo"}})).json()
        caller = await WebSocketCaller.dial(address, f"?token={made['token']}&events=1")
        await until(lambda: any("memory_set" in m["event"] for m in caller.of("event")))
        assert caller.of("ready")[0]["conversation"] == made["conversation"]
        await caller.close()
