"""The carriers' wires keep the channel contract, each in its own messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Connection, Dial, Refused
from tests.support.carrier_calls import PUBLIC, SECRETS, CarrierCall, HungUpOn, TwilioCall
from tests.support.carrier_kinds import ALL
from tests.support.lines import RecordingService, serving
from voice_agent.config import ServerOptions


class CarrierContract(ChannelContract):
    carried: type[CarrierCall]

    @pytest.fixture
    async def dial(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dial]:
        monkeypatch.setenv("VOICE_AGENT_API_KEY", "a-key-that-no-carrier-has")
        for name, value in SECRETS.items():
            monkeypatch.setenv(name, value)
        service, calls = RecordingService(channels=ALL), list[CarrierCall]()
        async with serving(service, ServerOptions(public_url=PUBLIC), channels=ALL) as address:

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
