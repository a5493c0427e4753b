"""One service and one API of the carriers for all tests of a module; each test begins with neither knowing anything.

A module that uses them runs on one event loop: ``pytestmark = pytest.mark.asyncio(loop_scope="module")``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.carrier_api import CarrierApi, carrier_api
from tests.support.carrier_calls import PUBLIC, SECRETS, CarrierCall
from tests.support.carrier_kinds import all_carriers
from tests.support.lines import RecordingService, serving
from voice_agent.config import ServerOptions

KEY = "a-key-that-no-carrier-has"
Served = tuple[str, RecordingService]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_api() -> AsyncIterator[CarrierApi]:
    async with carrier_api() as api:
        CarrierCall.api = api
        yield api


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_served(module_api: CarrierApi) -> AsyncIterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VOICE_AGENT_API_KEY", KEY)
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        channels = all_carriers(module_api.url)
        service = RecordingService(channels=channels)
        async with serving(service, ServerOptions(public_url=PUBLIC), channels=channels) as address:
            yield address, service


@pytest.fixture
def api(module_api: CarrierApi) -> CarrierApi:
    """The carriers' REST API."""
    module_api.forget()
    return module_api


@pytest.fixture
def served(module_served: Served, api: CarrierApi) -> Served:
    """A service that takes the calls of every carrier: its address, and itself."""
    module_served[1].calls.forget()
    return module_served
