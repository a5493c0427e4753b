"""Carriers' routes are opened by the carrier's own signature and by nothing else, before any call exists."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import jwt
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.channels.carriers.conftest import KEY
from tests.support.carrier_calls import (
    PUBLIC,
    SECRETS,
    CarrierCall,
    HungUpOn,
    PlivoCall,
    TelnyxCall,
    TwilioCall,
    VonageCall,
    post,
    twilio_signature,
)
from tests.support.carrier_kinds import CARRIERS, all_carriers
from tests.support.lines import RecordingService
from voice_agent.channels.carriers.carriers import carriers_of
from voice_agent.channels.carriers.request import MAX_BODY_BYTES
from voice_agent.config import Channels
from voice_agent.diagnostics import RemediableError

pytestmark = pytest.mark.asyncio(loop_scope="module")

EACH = pytest.mark.parametrize("carried", CARRIERS)


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
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        for shown in (KEY, token):
            headers = {"authorization": f"Bearer {shown}"}
            answer = await client.post(f"http://{address}{carried.answer_path}", headers=headers, json={})
            assert answer.status_code == 403
            with pytest.raises(InvalidStatus) as caught:
                await connect(f"ws://{address}{carried.stream_path}?token={shown}", additional_headers=headers)
            assert caught.value.response.status_code == 403
    assert service.calls.lines == []


@pytest.mark.parametrize("carried", [TwilioCall, PlivoCall, VonageCall])
@pytest.mark.parametrize("secret", ["", "another-secret-than-the-carriers"], ids=["missing", "wrong"])
async def test_an_upgrade_without_proof_is_refused(carried: type[CarrierCall], served: Served, secret: str) -> None:
    address, service = served
    _, token = await carried.announce(address)
    with pytest.raises(InvalidStatus) as caught:
        await carried.open_socket(address, token, secret)
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
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        answer = await client.post(f"http://{address}{carried.answer_path}", content=b"x" * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413


async def test_no_other_path_is_open(served: Served) -> None:
    address, _ = served
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
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
    only = Channels(**{carried.channel: getattr(all_carriers("http://127.0.0.1:1"), carried.channel)})
    needed = {name: value for name, value in SECRETS.items() if name.startswith(carried.channel.upper())}
    carriers_of(only, PUBLIC, RecordingService().calls, needed)
    if missing == "public_url":
        with pytest.raises(RemediableError, match="public_url"):
            carriers_of(only, None, RecordingService().calls, needed)
        return
    for name in carried.required:
        with pytest.raises(RemediableError, match=name):
            carriers_of(only, PUBLIC, RecordingService().calls, {k: v for k, v in needed.items() if k != name})


async def test_a_telnyx_stream_without_a_token_of_ours_is_refused(served: Served) -> None:
    address, service = served
    await TelnyxCall.announce(address)
    for token in ("", "made-up"):
        with pytest.raises(InvalidStatus) as caught:
            await TelnyxCall.open_socket(address, token)
        assert caught.value.response.status_code == 403
    assert service.calls.lines == []


async def refusals(address: str, path: str, headers: dict[str, str], **body: Any) -> list[int]:
    """The statuses of the same request sent twice."""
    return [(await post(address, path, headers, **body)).status_code for _ in range(2)]


async def test_what_is_shown_twice_counts_once(served: Served) -> None:
    address, service = served
    body = TelnyxCall.webhook("call.initiated", "v3:1", direction="incoming")
    assert await refusals(address, TelnyxCall.answer_path, TelnyxCall.signed(body, None), content=body) == [200, 403]
    form = {"CallUUID": "1", "From": "1"}
    headers = PlivoCall.signed("POST", PUBLIC + PlivoCall.answer_path, form, None)
    assert await refusals(address, PlivoCall.answer_path, headers, data=form) == [200, 403]
    body = json.dumps({"uuid": "1"}).encode()
    assert await refusals(address, VonageCall.answer_path, VonageCall.signed(body, None), content=body) == [200, 403]
    assert service.calls.lines == []


async def test_what_was_signed_too_long_ago_or_for_something_else_is_refused(served: Served) -> None:
    address, service = served
    telnyx = TelnyxCall.webhook("call.initiated", "v3:1", direction="incoming")
    vonage = json.dumps({"uuid": "1"}).encode()
    now = int(time.time())
    tries = [
        (TelnyxCall.answer_path, TelnyxCall.signed(telnyx, None, now - 310), telnyx),
        (TelnyxCall.answer_path, TelnyxCall.signed(telnyx, None, now + 400), telnyx),
        (TelnyxCall.answer_path, TelnyxCall.signed(telnyx, None), telnyx + b" "),
        (VonageCall.answer_path, VonageCall.signed(vonage, None, iat=now - 310), vonage),
        (VonageCall.answer_path, VonageCall.signed(vonage, None, iat=now - 100, exp=now - 10), vonage),
        (VonageCall.answer_path, VonageCall.signed(vonage, None), vonage + b" "),
        (VonageCall.answer_path, VonageCall.signed(b"", None), vonage),
        (VonageCall.answer_path, VonageCall.signed(vonage, None, application_id="another"), vonage),
        (VonageCall.answer_path, VonageCall.signed(vonage, None, jti=""), vonage),
        (VonageCall.answer_path, {"Authorization": "Bearer " + unsigned({"iat": now, "jti": "1"})}, vonage),
    ]
    for path, headers, body in tries:
        assert (await post(address, path, headers, content=body)).status_code == 403, headers
    form = {"CallUUID": "1", "From": "1"}
    headers = PlivoCall.signed("POST", PUBLIC + PlivoCall.answer_path, form, None)
    for changed in ({**form, "From": "2"}, {"CallUUID": "1"}):
        assert (await post(address, PlivoCall.answer_path, headers, data=changed)).status_code == 403
    headers = twilio_signature(PUBLIC + TwilioCall.answer_path, TwilioCall.form("CA1"))
    assert (await post(address, TwilioCall.answer_path, headers, data=TwilioCall.form("CA2"))).status_code == 403
    assert (
        await post(address, TwilioCall.answer_path + "?x=1", headers, data=TwilioCall.form("CA1"))
    ).status_code == 403
    assert service.calls.lines == []


def unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode({**claims, "application_id": SECRETS["VONAGE_APPLICATION_ID"]}, "", algorithm="none")
