"""Calls that are placed through carriers: asked for by HTTP, rung by the carrier, greeted once answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.channels.carriers.conftest import KEY
from tests.support.carrier_api import CarrierApi
from tests.support.carrier_calls import PUBLIC, SECRETS, CarrierCall, TwilioCall
from tests.support.carrier_kinds import CARRIERS, all_carriers
from tests.support.lines import RecordingService, serving, until
from tests.support.small_service import small_service
from voice_agent.channels.desk import CallRefused
from voice_agent.config import OutboundOptions, ServerOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")

EACH = pytest.mark.parametrize("carried", CARRIERS)
Served = tuple[str, RecordingService]


async def ask(address: str, method: str = "POST", path: str = "", key: str = KEY, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        headers = {"authorization": f"Bearer {key}"}
        return await client.request(method, f"http://{address}/v1/calls{path}", headers=headers, json=body or None)


async def place(address: str, api: CarrierApi, carried: type[CarrierCall], **more: Any) -> tuple[str, str]:
    """Ask for a call; returns our id of it and the carrier's, once the carrier has been asked to ring."""
    api.call, before = carried.new_call(), len(api.asked("POST", carried.dial_path))
    answer = await ask(address, to="+15550123", via=carried.channel, **more)
    assert (answer.status_code, answer.json()["state"]) == (202, "dialing"), answer.text
    await until(lambda: len(api.asked("POST", carried.dial_path)) > before)
    return answer.json()["call_id"], api.call


async def state(address: str, call_id: str) -> dict[str, Any]:
    return dict((await ask(address, "GET", f"/{call_id}")).json())


async def becomes(address: str, call_id: str, wanted: str) -> dict[str, Any]:
    async with asyncio.timeout(5):
        while (told := await state(address, call_id))["state"] != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return told


@EACH
async def test_a_call_begins_when_it_is_answered_and_not_before(
    carried: type[CarrierCall], served: Served, api: CarrierApi
) -> None:
    address, service = served
    call_id, call = await place(address, api, carried, conversation="c1")
    assert (await state(address, call_id))["state"] == "dialing"
    assert service.calls.lines == []
    await asyncio.sleep(0.05)
    answered = await carried.stream(address, call, await carried.token_placed(address, call))
    line = await service.calls.next_line()
    assert (line.request.conversation_id, line.request.channel) == ("c1", carried.channel)
    assert line.request.grant is not None
    assert line.request.facts["called_number"] == "+15550123"
    assert (await becomes(address, call_id, "answered"))["outcome"] == "answered"
    assert "+1555" not in str(await state(address, call_id))
    await answered.close()


@EACH
@pytest.mark.parametrize(("told", "outcome"), [("busy", "busy"), ("no_answer", "no_answer")])
async def test_a_call_that_nobody_takes_tells_why(
    carried: type[CarrierCall], served: Served, api: CarrierApi, told: str, outcome: str
) -> None:
    address, service = served
    call_id, call = await place(address, api, carried)
    assert (
        await carried.tell(address, call, told, secret="a-stranger-who-knows-the-id-but-no-secret")
    ).status_code == 403
    assert (await state(address, call_id))["state"] == "dialing"
    assert (await carried.tell(address, call, told)).status_code == 200
    assert (await becomes(address, call_id, "failed"))["outcome"] == outcome
    assert service.calls.lines == []


@EACH
async def test_a_machine_that_answers_is_greeted_at_once_and_told_later(
    carried: type[CarrierCall], served: Served, api: CarrierApi
) -> None:
    address, service = served
    call_id, call = await place(address, api, carried)
    answered = await carried.stream(address, call, await carried.token_placed(address, call))
    await service.calls.next_line()
    assert "answered_by" not in await becomes(address, call_id, "answered")
    assert (await carried.tell(address, call, "machine")).status_code == 200
    assert (await state(address, call_id))["answered_by"] == "machine"
    assert [(kind, data) for _, kind, data in service.calls.notes] == [("answered_by", {"who": "machine"})]
    await answered.close()


@EACH
@pytest.mark.parametrize(("status", "outcome"), [(400, "bad_address"), (401, "trunk_error"), (503, "trunk_error")])
async def test_what_the_carrier_refuses_is_told(
    carried: type[CarrierCall], served: Served, api: CarrierApi, status: int, outcome: str
) -> None:
    address, _ = served
    api.statuses[("POST", carried.dial_path)] = status
    call_id, _ = await place(address, api, carried)
    assert (await becomes(address, call_id, "failed"))["outcome"] == outcome


@EACH
async def test_a_call_that_rings_in_vain_is_taken_back(
    carried: type[CarrierCall], served: Served, api: CarrierApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voice_agent.channels.carriers.dialer.MARGIN_S", -29.8)
    address, _ = served
    call_id, call = await place(address, api, carried)
    assert (await becomes(address, call_id, "failed"))["outcome"] == "no_answer"
    await until(lambda: any(call in path for _, path, _ in api.requests))


async def test_nobody_is_called_whom_the_settings_do_not_allow(served: Served, api: CarrierApi) -> None:
    address, _ = served
    for body, status, code in [
        ({"to": "+4915550123", "via": "twilio"}, 403, "not_allowed"),
        ({"to": "+15550123", "via": "pigeon"}, 422, "bad_via"),
        ({"to": "+15550123"}, 422, "bad_via"),
        ({"to": 15550123, "via": "twilio"}, 422, "bad_to"),
        ({"to": "+15550123", "via": "twilio", "expires_in_s": 5}, 422, "bad_body"),
    ]:
        answer = await ask(address, **body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (await ask(address, key="wrong-key-of-nobody", to="+15550123", via="twilio")).status_code == 401
    assert (await ask(address, "GET", "/unknown")).status_code == 404
    assert api.requests == []


async def test_no_more_calls_ring_at_once_than_the_settings_allow(served: Served, api: CarrierApi) -> None:
    address, _ = served
    kinds = [(await ask(address, to="+15550123", via="twilio")).status_code for _ in range(7)]
    assert kinds == [202] * 5 + [429] * 2
    await until(lambda: len(api.named) == 5)
    for call in api.named:
        assert (await TwilioCall.tell(address, call, "busy")).status_code == 200
    assert (await ask(address, to="+15550123", via="twilio")).status_code == 202
    await until(lambda: len(api.named) == 6)
    await TwilioCall.tell(address, api.named[-1], "busy")


@pytest.mark.parametrize(("key", "prefixes"), [("", ("+1555",)), (KEY, ())], ids=["no key", "no prefixes"])
async def test_outbound_is_off_until_it_is_configured(
    api: CarrierApi, monkeypatch: pytest.MonkeyPatch, key: str, prefixes: tuple[str, ...]
) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", key)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    channels = all_carriers(api.url).model_copy(update={"outbound": OutboundOptions(allowed_prefixes=prefixes)})
    service = RecordingService(channels=channels)
    async with serving(service, ServerOptions(public_url="https://agent.example.com"), channels=channels) as address:
        answer = await ask(address, key=key or "any", to="+15550123", via="twilio")
    assert answer.status_code == 403
    assert answer.json()["code"] in ("outbound_needs_key", "outbound_off")
    assert api.requests == []


async def test_a_service_without_a_place_rings_nobody(served: Served, api: CarrierApi) -> None:
    address, service = served
    service.calls.full = CallRefused("at_capacity", "All lines are busy.")
    answer = await ask(address, to="+15550123", via="twilio")
    assert (answer.status_code, answer.json()["code"]) == (503, "at_capacity")
    assert answer.headers["retry-after"]
    assert api.requests == []


@EACH
@pytest.mark.parametrize("told", ["busy", "refused", "answered"])
async def test_a_place_is_kept_while_it_rings_and_given_back_when_nobody_came_for_it(
    carried: type[CarrierCall], served: Served, api: CarrierApi, told: str
) -> None:
    address, service = served
    if told == "refused":
        api.statuses[("POST", carried.dial_path)] = 503
    call_id, call = await place(address, api, carried)
    [kept] = service.calls.places
    if told == "answered":
        assert not kept.free
        answered = await carried.stream(address, call, await carried.token_placed(address, call))
        line = await service.calls.next_line()
        assert (line.request.place, kept.taken) == (kept, True)
        await becomes(address, call_id, "answered")
        await answered.close()
    elif told == "busy":
        assert not kept.free
        await carried.tell(address, call, "busy")
    await until(lambda: kept.free is (told != "answered"))


async def test_the_only_line_of_a_service_is_taken_from_the_moment_that_it_rings(
    tmp_path: Path, api: CarrierApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"VOICE_AGENT_API_KEY": KEY, **SECRETS}.items():
        monkeypatch.setenv(name, value)
    settings = (
        "server: {max_calls: 1}\nchannels:\n  outbound: {allowed_prefixes: ['+1555'], per_minute: 6000}\n"
        f"  twilio: {{enabled: true, from_number: '+15550000', api_url: '{api.url}'}}\n"
    )
    service = small_service(tmp_path, settings=settings)
    options = ServerOptions(public_url=PUBLIC)
    async with serving(service, options, channels=service.channels) as address:
        await until(lambda: not service.missing)
        call_id, call = await place(address, api, TwilioCall, conversation="c1")
        answer = await ask(address, to="+15550123", via="twilio")
        assert (answer.status_code, answer.json()["code"]) == (503, "at_capacity")
        await TwilioCall.tell(address, call, "busy")
        await becomes(address, call_id, "failed")
        call_id, call = await place(address, api, TwilioCall, conversation="c2")
        token = await TwilioCall.token_placed(address, call)
        await TwilioCall.tell(address, call, "machine")
        answered = await TwilioCall.stream(address, call, token)
        await becomes(address, call_id, "answered")
        await until(lambda: service.calls.registry.active)
        assert (await ask(address, to="+15550123", via="twilio")).status_code == 503
        await answered.hang_up()
        await answered.close()
        await until(lambda: not service.calls.registry.is_live("c2"))
        events = [dict(event) for event in await service.store.events("c2")]
        assert (await state(address, call_id))["answered_by"] == "machine"
    [told] = [event["answered_by"] for event in events if "answered_by" in event]
    assert told["who"] == "machine"
