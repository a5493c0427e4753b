"""``/v1/knowledge`` and ``/v1/memories`` on the ordinary service: learnt, used in the next turn, forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.hashed_words import HashedWords
from tests.support.lines import serving, until
from tests.support.small_service import small_service
from voice_agent.channels import rest_knowledge
from voice_agent.config import ServerOptions
from voice_agent.service.service import Service


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr("voice_agent.recall.opening.build_embedder", lambda options, threads: HashedWords())
    settings = "recall: {episodic: {enabled: true}, budget_ms: 3000}\nstore: {path: calls.sqlite3}\n"
    return small_service(tmp_path, settings=settings, model=["I see.", "Green."])


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(service) as address, httpx.AsyncClient(base_url=f"http://{address}", timeout=20) as client:
        await until(lambda: not service.missing, within_s=20)
        yield client


async def test_what_is_learnt_is_used_in_the_next_turn(service: Service, client: httpx.AsyncClient) -> None:
    learnt = await client.post("/v1/knowledge", json={"id": "router", "text": "# Lights\nThe router blinks green."})
    assert learnt.status_code == 201
    assert {"id": "router", "passages": 1, "changed": True}.items() <= learnt.json().items()
    again = await client.post("/v1/knowledge", json={"id": "router", "text": "# Lights\nThe router blinks green."})
    assert (again.status_code, again.json()["changed"]) == (200, False)
    said = await client.post("/v1/conversations/me/messages", json={"text": "why does my router blink green"})
    assert said.status_code == 200
    request = service._engines.model.requests[-1]  # type: ignore[attr-defined]
    assert (
        '{"document": "router", "title": "Lights", "text": "The router blinks green."}' in request.messages[0].content
    )
    listed = (await client.get("/v1/knowledge")).json()["texts"]
    assert [one["id"] for one in listed] == ["router"]
    assert (await client.get("/v1/knowledge/router")).json() == listed[0]
    assert (await client.delete("/v1/knowledge/router")).status_code == 204
    assert (await client.delete("/v1/knowledge/router")).status_code == 404
    assert (await client.get("/v1/knowledge/router")).status_code == 404


async def test_what_was_said_is_kept_and_forgotten(service: Service, client: httpx.AsyncClient) -> None:
    await client.post("/v1/conversations/me/messages", json={"text": "my router is broken"})
    memories = service.recall.memories
    async with asyncio.timeout(10):
        while not await memories.conversations():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert await memories.conversations() == ["me"]
    forgotten = await client.delete("/v1/memories", params={"conversation": "me"})
    assert forgotten.json() == {"forgotten": {"conversations": 1, "exchanges": 1}}
    assert await memories.conversations() == []


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "text/markdown"])
async def test_documents_come_as_they_are(client: httpx.AsyncClient, kind: str) -> None:
    sent = await client.post(
        "/v1/knowledge",
        params={"id": "a/b c"},
        content=b"<p>words</p>",
        headers={"content-type": f"{kind}; charset=utf-8"},
    )
    assert sent.status_code == 201, sent.text
    assert (await client.get("/v1/knowledge/a/b c")).json()["id"] == "a/b c"


async def test_bad_requests_are_told_what_would_be_right(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_knowledge, "MAX_BODY_BYTES", 2000)

    async def post(status: int, code: str, **request: object) -> None:
        answer = await client.post("/v1/knowledge", **request)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text

    plain = {"content-type": "text/plain"}
    await post(415, "bad_type", content=b"x", headers={"content-type": "image/png"}, params={"id": "a"})
    await post(422, "bad_id", content=b"x", headers=plain)
    await post(422, "bad_id", content=b"x", headers=plain, params={"id": "a\nb"})
    await post(422, "bad_title", content=b"x", headers=plain, params={"id": "a", "title": "t" * 300})
    await post(413, "too_large", content=b"x" * 3000, headers=plain, params={"id": "a"})
    await post(422, "not_learnt", content=b"%PDF", headers={"content-type": "application/pdf"}, params={"id": "a"})
    await post(400, "bad_body", json=["x"])
    await post(422, "bad_request", json={"id": "a", "text": "x", "url": "http://example.com"})
    await post(415, "bad_type", json={"id": "a", "text": "x", "type": "application/pdf"})
    for query in ({}, {"caler": "ann"}, {"older_than_days": "soon"}, {"older_than_days": "-1"}):
        assert (await client.delete("/v1/memories", params=query)).status_code == 422
    assert (await client.get("/v1/knowledge")).json() == {"texts": []}


async def test_the_gate_stands_before_it(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", "k" * 20)
    async with serving(service, ServerOptions()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        for method, path in (("GET", "/v1/knowledge"), ("POST", "/v1/knowledge"), ("DELETE", "/v1/memories?caller=a")):
            assert (await client.request(method, path)).status_code == 401
        from_page = {"origin": "https://evil.example", "authorization": "Bearer " + "k" * 20}
        assert (await client.get("/v1/knowledge", headers=from_page)).status_code == 403
        await until(lambda: not service.missing, within_s=20)
