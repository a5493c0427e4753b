"""The carriers' wires keep the channel contract, each in its own messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Connection, Dial, Refused
from tests.support.carrier_calls import CarrierCall, HungUpOn, PlivoCall, TelnyxCall, TwilioCall, VonageCall
from tests.support.lines import RecordingService


class CarrierContract(ChannelContract):
    carried: type[CarrierCall]

    @pytest.fixture
    async def dial(self, served: tuple[str, RecordingService]) -> AsyncIterator[Dial]:
        address, service = served
        calls = list[CarrierCall]()

        async def dial(authenticated: bool = True) -> Connection:
            try:
                call = await self.carried.ring(address, secret=None if authenticated else "")
            except (HungUpOn, InvalidStatus):
                assert service.calls.lines == []
                raise Refused from None
            calls.append(call)
            return Connection(await service.calls.next_line(), call)

        yield dial
        for call in calls:
            await call.close()


class TestTwilio(CarrierContract):
    carried = TwilioCall


class TestTelnyx(CarrierContract):
    carried = TelnyxCall


class TestPlivo(CarrierContract):
    carried = PlivoCall


class TestVonage(CarrierContract):
    carried = VonageCall
