"""Media sockets accepted callers without proof, so anyone could forge calls.

Right: missing, wrong and half-right proof is refused on every route and on the upgrade itself, before any
session object exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.lines import RecordingService, serving

KEY = "the-only-key-that-fits"


@pytest.fixture
def service() -> RecordingService:
    return RecordingService()


@pytest.fixture
async def address(service: RecordingService, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    async with serving(service) as address:
        yield address


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", f"?token={KEY[:-1]}", f"?token={KEY}%00", f"?key={KEY}"]
)
async def test_an_upgrade_without_the_key_is_refused_before_a_call_exists(
    service: RecordingService, address: str, query: str
) -> None:
    with pytest.raises(InvalidStatus) as caught:
        await connect(f"ws://{address}/ws{query}")
    assert caught.value.response.status_code == 401
    assert b'"unauthorized"' in (caught.value.response.body or b"")
    assert service.calls.lines == []


async def test_the_right_key_comes_in_by_header_and_by_query(service: RecordingService, address: str) -> None:
    by_query = await connect(f"ws://{address}/ws?token={KEY}")
    by_header = await connect(f"ws://{address}/ws", additional_headers={"Authorization": f"Bearer {KEY}"})
    await service.calls.next_line()
    await service.calls.next_line()
    await by_query.close()
    await by_header.close()


async def test_a_token_is_bound_to_its_call_and_cannot_be_replayed(service: RecordingService, address: str) -> None:
    token, grant = service.tokens.issue("c1", {}, 60)
    await connect(f"ws://{address}/ws?token={token}&conversation=c2")
    first = await connect(f"ws://{address}/ws?token={token}")
    line = await service.calls.next_line()
    assert (line.request.conversation_id, line.request.grant) == ("c1", grant)
    grant.begin()
    await first.close()
    grant.end()
    for replayed in (token, token[:-1], token + "x", "call_0000_0000"):
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://{address}/ws?token={replayed}")
        assert caught.value.response.status_code == (403 if replayed == token else 401)
    assert service.calls.lines == [line]


async def test_every_other_route_asks_for_the_key_too(address: str) -> None:
    async with httpx.AsyncClient(base_url=f"http://{address}") as client:
        assert (await client.post("/v1/calls", json={})).status_code == 401
        assert (await client.post("/v1/conversations/c1/messages", json={"text": "hi"})).status_code == 401
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.get("/metrics", headers={"Authorization": f"Bearer {KEY}"})).status_code == 200
        assert (await client.get("/healthz")).status_code == 200
