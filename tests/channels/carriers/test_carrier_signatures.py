"""Carriers' routes are opened by the carrier's own signature and by nothing else, before any call exists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.carrier_calls import PUBLIC, SECRETS, CarrierCall, HungUpOn
from tests.support.carrier_kinds import ALL, CARRIERS
from tests.support.lines import RecordingService, serving
from voice_agent.channels.carriers.carriers import carriers_of
from voice_agent.channels.carriers.request import MAX_BODY_BYTES
from voice_agent.config import ServerOptions
from voice_agent.diagnostics import RemediableError

KEY = "a-key-that-no-carrier-has"
EACH = pytest.mark.parametrize("carried", CARRIERS)


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, RecordingService]]:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    service = RecordingService(channels=ALL)
    async with serving(service, ServerOptions(public_url=PUBLIC), channels=ALL) as address:
        yield address, service


Served = tuple[str, RecordingService]


@EACH
@pytest.mark.parametrize("secret", ["", "another-secret-than-the-carriers"], ids=["missing", "wrong"])
async def test_a_webhook_without_the_right_signature_is_refused(
    carried: type[CarrierCall], served: Served, secret: str
) -> None:
    address, service = served
    with pytest.raises(HungUpOn) as caught:
        await carried.ring(address, secret=secret)
    assert caught.value.status == 403
    assert service.calls.lines == []


@EACH
async def test_neither_the_api_key_nor_a_call_token_opens_a_carriers_routes(
    carried: type[CarrierCall], served: Served
) -> None:
    address, service = served
    token, _ = service.tokens.issue("c1", {}, 60)
    async with httpx.AsyncClient(trust_env=False) as client:
        for shown in (KEY, token):
            headers = {"authorization": f"Bearer {shown}"}
            answer = await client.post(f"http://{address}{carried.answer_path}", headers=headers, json={})
            assert answer.status_code == 403
            with pytest.raises(InvalidStatus) as caught:
                await connect(f"ws://{address}{carried.stream_path}?token={shown}", additional_headers=headers)
            assert caught.value.response.status_code == 403
    assert service.calls.lines == []


@EACH
@pytest.mark.parametrize("secret", ["", "another-secret-than-the-carriers"], ids=["missing", "wrong"])
async def test_an_upgrade_without_proof_is_refused(carried: type[CarrierCall], served: Served, secret: str) -> None:
    address, service = served
    _, token = await carried.announce(address)
    with pytest.raises(InvalidStatus) as caught:
        await carried.open_socket(address, "" if carried.token_in_upgrade else token, secret)
    assert caught.value.response.status_code == 403
    assert service.calls.lines == []


@EACH
async def test_a_webhook_that_comes_again_makes_no_second_call(carried: type[CarrierCall], served: Served) -> None:
    address, service = served
    call, token = await carried.announce(address)
    assert await carried.announce(address, call=call) == (call, token)  # the carrier tries again: the same answer
    live = await carried.stream(address, call, token)
    await service.calls.next_line()
    with pytest.raises(HungUpOn) as caught:
        await carried.announce(address, call=call)
    assert caught.value.status == 403
    await live.close()
    assert len(service.calls.lines) == 1


async def over(carried: type[CarrierCall], address: str, call: str, token: str) -> None:
    """A stream that does not become a call: refused at the upgrade, or closed when it says which call it is."""
    try:
        stream = await carried.stream(address, call, token)
    except InvalidStatus as refused:
        assert refused.response.status_code == 403
        return
    async with asyncio.timeout(3):
        await stream._reader
    assert stream.closed_with == 1008


@EACH
async def test_a_token_is_good_for_one_stream(carried: type[CarrierCall], served: Served) -> None:
    address, service = served
    call, token = await carried.announce(address)
    live = await carried.stream(address, call, token)
    await service.calls.next_line()
    await over(carried, address, call, token)
    await live.close()
    await over(carried, address, call, token)
    assert len(service.calls.lines) == 1


@EACH
async def test_a_token_is_good_for_its_own_call_only(carried: type[CarrierCall], served: Served) -> None:
    address, service = served
    call, token = await carried.announce(address)
    await over(carried, address, carried.new_call(), token)
    await over(carried, address, call, token)  # shown by a stranger, it is void
    await over(carried, address, call, "made-up")
    assert service.calls.lines == []


@EACH
async def test_a_stream_that_never_says_which_call_it_is_is_closed(
    carried: type[CarrierCall], served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voice_agent.channels.streaming.channel.HANDSHAKE_S", 0.2)
    address, service = served
    _, token = await carried.announce(address)
    socket = await carried.open_socket(address, token)
    async with asyncio.timeout(3):
        with pytest.raises(ConnectionClosed):
            await socket.recv()
    assert (socket.close_code, service.calls.lines) == (1008, [])


@EACH
async def test_a_body_that_is_too_large_is_not_read(carried: type[CarrierCall], served: Served) -> None:
    address, _ = served
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"http://{address}{carried.answer_path}", content=b"x" * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413


async def test_no_other_path_is_open(served: Served) -> None:
    address, _ = served
    async with httpx.AsyncClient(trust_env=False) as client:
        for path in (
            "/twilio/voice/",
            "/twilio",
            "/twilio/../v1/calls",
            "/TWILIO/voice",
            "/twilio//voice",
            "/v1/calls",
        ):
            assert (await client.post(f"http://{address}{path}")).status_code == 401, path


@EACH
@pytest.mark.parametrize("missing", ["secret", "public_url"])
async def test_a_carrier_does_not_start_without_what_its_signature_needs(
    carried: type[CarrierCall], missing: str
) -> None:
    only = type(ALL)(**{carried.channel: getattr(ALL, carried.channel)})
    needed = {name: value for name, value in SECRETS.items() if name.startswith(carried.channel.upper())}
    carriers_of(only, PUBLIC, RecordingService().calls, needed)
    if missing == "public_url":
        with pytest.raises(RemediableError, match="public_url"):
            carriers_of(only, None, RecordingService().calls, needed)
        return
    for name in carried.required:
        with pytest.raises(RemediableError, match=name):
            carriers_of(only, PUBLIC, RecordingService().calls, {k: v for k, v in needed.items() if k != name})
