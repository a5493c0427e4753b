"""A caller from a carrier talks to the ordinary service: greeted, heard, stopped for, and known."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.voice import SECONDS_PER_CHARACTER
from tests.support.carrier_api import CarrierApi
from tests.support.carrier_calls import CALLER, PUBLIC, SECRETS, CarrierCall, PlivoCall, TwilioCall
from tests.support.lines import serving, until
from tests.support.small_service import GREETING, small_service, spoken
from voice_agent.config import ServerOptions
from voice_agent.service.service import Service

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen."
SETTINGS = """
channels:
  {name}: {{enabled: true, api_url: "{api}"}}
"""
FILES = {"memory.yml": "caller_number: {type: text, seed: true}\n"}
GOAL_S = 0.15
"""From the caller's first voiced sample to the agent's last at the far end."""
MARGIN_S = 0.15
"""For machines that have other things to do."""


async def agent(tmp_path: Path, api: CarrierApi, monkeypatch: pytest.MonkeyPatch, name: str) -> Service:
    for secret, value in SECRETS.items():
        monkeypatch.setenv(secret, value)
    return small_service(
        tmp_path,
        model=[LONG, "Yes?"],
        hears=["what is my balance", "stop please", "stop please"],
        settings=SETTINGS.format(name=name, api=api.url),
        files=FILES,
    )


@pytest.mark.parametrize("carried", [TwilioCall, PlivoCall])
@pytest.mark.alone
async def test_an_interruption_stops_the_agent_at_the_carrier_and_what_was_heard_is_known_to_a_word(
    carried: type[CarrierCall],
    tmp_path: Path,
    api: CarrierApi,
    monkeypatch: pytest.MonkeyPatch,
    record_property: pytest.RecordProperty,
) -> None:
    service = await agent(tmp_path, api, monkeypatch, carried.channel)
    async with serving(service, ServerOptions(public_url=PUBLIC)) as address:
        await until(lambda: not service.missing)
        call = await carried.ring(address)
        greeting_s = len(GREETING) * SECONDS_PER_CHARACTER
        await until(lambda: call.played_s >= greeting_s - 0.1)
        await asyncio.sleep(0.3)
        await call.talk(spoken(0.6, 0.9))
        await until(lambda: call.played_s > greeting_s + 1.5)
        onset = asyncio.get_running_loop().time()
        talking = asyncio.create_task(call.talk(spoken(0.8, 1.2)))
        await until(lambda: call.stops)
        stopped_at, played_s = call.stops[0]
        await talking
        conversation = service.calls.registry.active[0].conversation_id
        await call.hang_up()
        await call.close()
        await until(lambda: not service.calls.registry.active)
        events = [dict(event) for event in await service.store.events(conversation)]
    record_property("stop_s", round(stopped_at - onset, 3))
    assert stopped_at - onset <= GOAL_S + MARGIN_S
    said = next(event["bot"] for event in events if "bot" in event and event["bot"]["text"].startswith("one two"))
    heard, played = str(said["text"]).split(), LONG[: int((played_s - greeting_s) / SECONDS_PER_CHARACTER)].split()
    assert heard == LONG.split()[: len(heard)]
    assert abs(len(heard) - len(played)) <= 1
    known = next(event["memory_set"] for event in events if "memory_set" in event)
    assert CALLER in str(known)
