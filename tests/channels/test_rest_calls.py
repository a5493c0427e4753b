"""``POST /v1/calls`` over HTTP: what an application asks for and gets, and what it is told when it asks wrongly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.support.lines import RecordingService, serving


@pytest.fixture
def service() -> RecordingService:
    return RecordingService()


@pytest.fixture
async def client(service: RecordingService) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        yield client


async def test_a_token_comes_with_its_conversation_and_the_moment_it_expires(
    service: RecordingService, client: httpx.AsyncClient
) -> None:
    asked = {"metadata": {"tier": "gold"}, "user_id": "ann", "conversation": "web-17", "expires_in_s": 600}
    made = await client.post("/v1/calls", json=asked)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    body = made.json()
    grant = service.tokens.find(body["token"])
    assert (
        (body["conversation"], body["call_id"]) == ("web-17", grant.call_id) == (grant.conversation_id, grant.call_id)
    )
    assert grant.metadata == {"tier": "gold", "user_id": "ann"}
    left_s = (datetime.fromisoformat(body["expires_at"]) - datetime.now(UTC)).total_seconds()
    assert 590 < left_s <= 600


async def test_an_empty_body_gives_a_token_for_a_new_conversation(client: httpx.AsyncClient) -> None:
    made = [(await client.post("/v1/calls")).json() for _ in range(2)]
    assert made[0]["conversation"] != made[1]["conversation"]


@pytest.mark.parametrize(
    ("body", "status", "code", "tells"),
    [
        ("[]", 400, "bad_body", "JSON object"),
        ("{", 400, "bad_body", "JSON object"),
        ({"metdata": {}}, 422, "bad_body", "metadata, user_id, conversation, expires_in_s"),
        ({"metadata": []}, 422, "bad_metadata", "object"),
        ({"conversation": "a b"}, 422, "bad_conversation", "letters"),
        ({"conversation": 5}, 422, "bad_conversation", "letters"),
        ({"expires_in_s": 0}, 422, "bad_expiry", "from 1 to 3600"),
        ({"expires_in_s": 3601}, 422, "bad_expiry", "from 1 to 3600"),
        ({"expires_in_s": True}, 422, "bad_expiry", "from 1 to 3600"),
        ({"expires_in_s": "60"}, 422, "bad_expiry", "from 1 to 3600"),
        ('{"expires_in_s": NaN}', 400, "bad_body", "JSON object"),
    ],
)
async def test_a_body_that_cannot_be_used_is_told_what_would_be_right(
    service: RecordingService, client: httpx.AsyncClient, body: Any, status: int, code: str, tells: str
) -> None:
    answer = await client.post("/v1/calls", **({"content": body} if isinstance(body, str) else {"json": body}))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert tells in answer.json()["message"]
    assert len(service.tokens) == 0
