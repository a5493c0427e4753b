from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.carrier_api import CarrierApi, carrier_api
from tests.support.carrier_calls import PUBLIC, SECRETS, CarrierCall
from tests.support.carrier_kinds import all_carriers
from tests.support.lines import RecordingService, serving
from voice_agent.config import ServerOptions

KEY = "a-key-that-no-carrier-has"


@pytest.fixture
async def api() -> AsyncIterator[CarrierApi]:
    """The carriers' REST API."""
    async with carrier_api() as api:
        CarrierCall.api = api
        yield api


@pytest.fixture
async def served(api: CarrierApi, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, RecordingService]]:
    """A service that takes the calls of every carrier: its address, and itself."""
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    channels = all_carriers(api.url)
    service = RecordingService(channels=channels)
    async with serving(service, ServerOptions(public_url=PUBLIC), channels=channels) as address:
        yield address, service
