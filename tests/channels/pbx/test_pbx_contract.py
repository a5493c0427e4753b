"""The wires of telephone exchanges keep the channel contract, each in its own messages."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Dial, dialling
from tests.support.exchanges import Asterisk, Exchange, FreeSwitch, Genesys, Jambonz
from tests.support.genesys_signing import GENESYS_KEYS, signed_headers
from tests.support.lines import RecordingService, serving
from voice_agent.config import AsteriskOptions, Channels, FreeSwitchOptions, GenesysOptions, JambonzOptions

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "a-key-of-the-contract-suite"
ALL = Channels(
    asterisk=AsteriskOptions(enabled=True),
    freeswitch=FreeSwitchOptions(enabled=True),
    jambonz=JambonzOptions(enabled=True),
    genesys=GenesysOptions(enabled=True),
)


class PlainAsterisk(Asterisk):
    json = False
    codec = "ulaw"


class WideAsterisk(Asterisk):
    codec = "slin16"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_served() -> AsyncIterator[tuple[str, RecordingService]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"VOICE_AGENT_API_KEY": KEY, **GENESYS_KEYS}.items():
            patch.setenv(name, value)
        service = RecordingService(channels=ALL)
        async with serving(service, channels=ALL) as address:
            yield address, service


class PbxContract(ChannelContract):
    exchange: type[Exchange]
    rate = 8000

    @pytest_asyncio.fixture(loop_scope="module")
    async def dial(self, module_served: tuple[str, RecordingService]) -> AsyncIterator[Dial]:
        address, service = module_served
        service.calls.forget()

        async def place(authenticated: bool) -> Exchange:
            headers = self.headers(address, authenticated)
            far: Exchange = await self.exchange.dial(address, self.query(), self.rate, additional_headers=headers)
            return far

        async with dialling(service.calls, place, InvalidStatus) as dial:
            yield dial

    def query(self) -> str:
        return ""

    def headers(self, address: str, authenticated: bool) -> dict[str, str]:
        basic = base64.b64encode(f"asterisk:{KEY}".encode()).decode()
        return {"Authorization": f"Basic {basic}"} if authenticated else {}


class TestAsterisk(PbxContract):
    exchange = Asterisk


class TestAsteriskWithPlainTexts(PbxContract):
    exchange = PlainAsterisk


class TestAsteriskAt16Khz(PbxContract):
    exchange, rate = WideAsterisk, 16000


class TestFreeSwitch(PbxContract):
    exchange, rate = FreeSwitch, 16000

    def query(self) -> str:
        return "?rate=16000"


class TestJambonz(PbxContract):
    exchange = Jambonz


class TestGenesys(PbxContract):
    exchange = Genesys

    def headers(self, address: str, authenticated: bool) -> dict[str, str]:
        return signed_headers(address) if authenticated else {"Authorization": f"Bearer {KEY}"}
