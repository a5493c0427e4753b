"""The end of a call at the carrier's side: hung up, put through, or left alone where the caller has gone."""

from __future__ import annotations

import asyncio
import logging
from xml.etree import ElementTree

import pytest

from tests.channels.contract import ended
from tests.support.carrier_api import CarrierApi
from tests.support.carrier_calls import (
    CALLED,
    CALLER,
    PUBLIC,
    CarrierCall,
    PlivoCall,
    TelnyxCall,
    TwilioCall,
    VonageCall,
    post,
)
from tests.support.carrier_kinds import CARRIERS
from tests.support.lines import Line, RecordingService, until
from voice_agent.call.wire import TransferringWire
from voice_agent.channels.desk import CallRefused
from voice_agent.transfers import TransferReason, TransferTarget

pytestmark = pytest.mark.asyncio(loop_scope="module")

EACH = pytest.mark.parametrize("carried", CARRIERS)
Served = tuple[str, RecordingService]
TARGET = TransferTarget("billing", "+15550177", timeout_s=20)


def hang_ups(api: CarrierApi, call: str) -> list[tuple[str, str]]:
    """The requests that end a leg."""
    return [
        (method, path)
        for method, path, body in api.requests
        if call in path and (method == "DELETE" or path.endswith("/hangup") or body.get("Status") == "completed")
    ]


async def connected(carried: type[CarrierCall], served: Served) -> tuple[CarrierCall, Line]:
    address, service = served
    call = await carried.ring(address)
    return call, await service.calls.next_line()


@EACH
async def test_the_agents_hang_up_ends_the_carriers_leg(
    carried: type[CarrierCall], served: Served, api: CarrierApi
) -> None:
    call, near = await connected(carried, served)
    await near.wire.hang_up("completed")
    await until(lambda: call.over)
    if carried in (TelnyxCall, PlivoCall):
        # These keep a call whose stream has ended.
        await until(lambda: hang_ups(api, call.call))
    else:
        assert call.closed_with == 1000
        assert hang_ups(api, call.call) == []
    await call.close()
    assert len(hang_ups(api, call.call)) <= 1


async def test_a_leg_that_its_caller_has_ended_is_left_alone(served: Served, api: CarrierApi) -> None:
    call, near = await connected(TelnyxCall, served)
    await call.hang_up()
    assert await ended(near) == "hang_up"
    await call.close()
    assert hang_ups(api, call.call) == []


async def test_a_caller_who_is_not_taken_is_hung_up_on(served: Served, api: CarrierApi) -> None:
    address, service = served
    service.calls.refuse = CallRefused("at_capacity", "All lines are busy.")
    call = await TelnyxCall.ring(address)
    await until(lambda: hang_ups(api, call.call))
    assert call.closed_with == 1013
    assert service.calls.lines == []


async def test_a_caller_whose_stream_the_carrier_could_not_connect_is_hung_up_on(
    served: Served, api: CarrierApi
) -> None:
    call, _ = await TelnyxCall.announce(served[0])
    body = TelnyxCall.webhook("call.streaming.failed", call, failure_reason="connection_failed")
    headers = TelnyxCall.signed(body, None)
    assert (await post(served[0], TelnyxCall.answer_path, headers, content=body)).status_code == 200
    assert len(hang_ups(api, call)) == 1


@EACH
async def test_a_caller_is_handed_over(carried: type[CarrierCall], served: Served, api: CarrierApi) -> None:
    call, near = await connected(carried, served)
    assert near.wire.traits.can_transfer
    assert isinstance(near.wire, TransferringWire)
    assert (await near.wire.transfer(TARGET)).reason is TransferReason.COMPLETED
    method, path, body = api.requests[-1]
    if carried is TwilioCall:
        dial = ElementTree.fromstring(body["Twiml"]).find("Dial")
        assert dial is not None
        assert (dial.attrib["timeout"], dial[0].tag, dial[0].text) == ("20", "Number", TARGET.to)
    elif carried is TelnyxCall:
        assert path == f"/v2/calls/{call.call}/actions/transfer"
        assert (body["to"], body["timeout_secs"]) == (TARGET.to, 20)
    elif carried is PlivoCall:
        assert body == {"legs": "aleg", "aleg_url": PUBLIC + "/plivo/transfer", "aleg_method": "POST"}
        form = {"CallUUID": call.call}
        headers = PlivoCall.signed("POST", PUBLIC + "/plivo/transfer", form, None)
        answer = await post(served[0], "/plivo/transfer", headers, data=form)
        number = ElementTree.fromstring(answer.text).find("Dial/Number")
        assert number is not None
        assert number.text == TARGET.to[1:]
    elif carried is VonageCall:
        assert (method, path) == ("PUT", f"/v1/calls/{call.call}")
        [action] = body["destination"]["ncco"]
        assert action["endpoint"] == [{"type": "phone", "number": TARGET.to[1:]}]
    await call.close()
    await ended(near)
    assert hang_ups(api, call.call) == []


@EACH
@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, TransferReason.UNREACHABLE), (404, TransferReason.TRUNK_ERROR), (500, TransferReason.TRUNK_ERROR)],
)
async def test_a_transfer_that_the_carrier_refuses_has_a_reason_and_the_call_goes_on(
    carried: type[CarrierCall], served: Served, api: CarrierApi, status: int, reason: TransferReason
) -> None:
    call, near = await connected(carried, served)
    api.statuses = {("POST", ""): status, ("PUT", ""): status}
    assert isinstance(near.wire, TransferringWire)
    assert (await near.wire.transfer(TARGET)).reason is reason
    await call.press("5")
    await until(lambda: near.inputs.keys)
    await call.close()


async def test_a_transfer_that_the_carrier_does_not_answer_ends_in_time(
    served: Served, api: CarrierApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voice_agent.channels.carriers.api.REQUEST_S", 0.2)
    call, near = await connected(TwilioCall, served)
    gate = asyncio.Event()
    api.hold = gate
    assert isinstance(near.wire, TransferringWire)
    assert (await near.wire.transfer(TARGET)).reason is TransferReason.TIMEOUT
    gate.set()
    await call.close()


@EACH
async def test_a_warm_transfer_is_not_supported(carried: type[CarrierCall], served: Served) -> None:
    call, near = await connected(carried, served)
    assert isinstance(near.wire, TransferringWire)
    warm = TransferTarget("billing", "+15550177", warm=True)
    assert (await near.wire.transfer(warm)).reason is TransferReason.NOT_SUPPORTED
    await call.close()


@EACH
async def test_an_interruption_is_exactly_one_clear_message(carried: type[CarrierCall], served: Served) -> None:
    call, near = await connected(carried, served)
    for _ in range(10):
        near.wire.send_audio(b"\x10\x10" * 320)
    near.wire.clear()
    await near.wire.drain(2)
    clears = [m for m in call.texts if isinstance(m, dict) and "clear" in str(m.get("event", m.get("action"))).lower()]
    assert (call.clears, len(clears)) == (1, 1)
    await call.close()


@EACH
async def test_who_calls_is_known_to_the_call_and_stands_in_no_log(
    carried: type[CarrierCall], served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    call, near = await connected(carried, served)
    assert near.request.facts == {"caller_number": CALLER, "called_number": CALLED}
    await call.close()
    await ended(near)
    # Libraries are heard from WARNING up (`voice_agent.telemetry.logging`).
    heard = [r for r in caplog.records if r.name.startswith("voice_agent") or r.levelno >= logging.WARNING]
    ours = "\n".join(str(vars(record)) for record in heard)
    for secret in (CALLER, CALLER[1:], CALLED, CALLED[1:], call.token):
        assert secret not in ours
