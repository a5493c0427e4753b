"""The carriers' wires keep the channel contract, each in its own messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Dial, dialling
from tests.support.carrier_calls import CarrierCall, HungUpOn, PlivoCall, TelnyxCall, TwilioCall, VonageCall
from tests.support.lines import RecordingService

pytestmark = pytest.mark.asyncio(loop_scope="module")


class CarrierContract(ChannelContract):
    carried: type[CarrierCall]

    @pytest_asyncio.fixture(loop_scope="module")
    async def dial(self, served: tuple[str, RecordingService]) -> AsyncIterator[Dial]:
        address, service = served

        async def place(authenticated: bool) -> CarrierCall:
            call: CarrierCall = await self.carried.ring(address, secret=None if authenticated else "")
            return call

        async with dialling(service.calls, place, HungUpOn, InvalidStatus) as dial:
            yield dial


class TestTwilio(CarrierContract):
    carried = TwilioCall


class TestTelnyx(CarrierContract):
    carried = TelnyxCall


class TestPlivo(CarrierContract):
    carried = PlivoCall


class TestVonage(CarrierContract):
    carried = VonageCall
