"""The wires of telephone exchanges keep the channel contract, each in its own messages."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest
from websockets.exceptions import InvalidStatus

from tests.channels.contract import ChannelContract, Connection, Dial, Refused
from tests.support.exchanges import Asterisk, Exchange, FreeSwitch, Genesys, Jambonz
from tests.support.genesys_signing import GENESYS_KEYS, signed_headers
from tests.support.lines import RecordingService, serving
from voice_agent.config import AsteriskOptions, Channels, FreeSwitchOptions, GenesysOptions, JambonzOptions

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


class PbxContract(ChannelContract):
    exchange: type[Exchange]
    rate = 8000

    @pytest.fixture
    async def dial(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dial]:
        monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
        for name, value in GENESYS_KEYS.items():
            monkeypatch.setenv(name, value)
        service, exchanges = RecordingService(channels=ALL), list[Exchange]()
        async with serving(service, channels=ALL) as address:

            async def dial(authenticated: bool = True) -> Connection:
                try:
                    exchange = await self.exchange.dial(
                        address, self.query(), self.rate, additional_headers=self.headers(address, authenticated)
                    )
                except InvalidStatus:
                    assert service.calls.lines == []
                    raise Refused from None
                exchanges.append(exchange)
                return Connection(await service.calls.next_line(), exchange)

            yield dial
            for exchange in exchanges:
                await exchange.close()

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
