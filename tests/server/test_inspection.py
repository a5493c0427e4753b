"""The inspector by HTTP: who may look, what is told, that it is what the store holds, and that nothing is unbounded."""

from __future__ import annotations

import asyncio
import json
import logging
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.support.inspected_service import FILES, NUMBER, SPOKEN, hold_call, inspected_service, interrupt
from tests.support.lines import serving, until
from tests.support.small_service import small_service
from tests.support.websocket_caller import WebSocketCaller
from voice_agent.config import InspectorOptions, ServerOptions
from voice_agent.dialogue.events import payload_of
from voice_agent.inspector.feed import LiveFeed, Viewer
from voice_agent.inspector.redaction import REDACTED
from voice_agent.server.inspection import is_on, router
from voice_agent.service.service import Service

KEY = "a-key-of-more-than-16-characters"
ROOT = "/v1/inspect"
CALL = f"{ROOT}/conversations/user-42"


@asynccontextmanager
async def inspected(
    service: Service, headers: dict[str, str] | None = None, options: ServerOptions | None = None
) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    async with (
        serving(service, options) as address,
        httpx.AsyncClient(base_url=f"http://{address}", headers=headers, timeout=10) as client,
    ):
        await until(lambda: not service.missing)
        yield address, client


async def told(client: httpx.AsyncClient, path: str = CALL, **query: Any) -> Any:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


async def say(client: httpx.AsyncClient, conversation: str, text: str = "hello") -> None:
    answer = await client.post(f"/v1/conversations/{conversation}/messages", json={"text": text})
    assert answer.status_code == 200, answer.text


async def test_a_call_is_told_as_the_store_holds_it_live_and_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    service = inspected_service(tmp_path, settings="inspector: {personal_data: true}\n")
    async with inspected(service) as (address, client):
        caller = await hold_call(address)
        live = await told(client)
        assert live["live"] and live["calls"][0]["live"]
        (listed,) = (await told(client, ROOT))["calls"]
        assert (listed["conversation"], listed["channel"], listed["state"]) == ("user-42", "websocket", "speaking")
        assert (await client.delete(CALL)).status_code == 409
        await interrupt(caller)
        await until(lambda: not service.calls.registry.is_live("user-42"))

        shown, plain = await told(client), await told(client, personal="show")
        stored = await service.store.load("user-42")
        assert stored is not None
        records = [(kind, payload) for kind, payload in map(payload_of, stored.events)]

        # Turns: what was said and heard, with the times of the live metrics.
        said = [p["text"] for k, p in records if k == "user"]
        assert [turn["user"]["text"] for turn in plain["turns"]] == said
        assert SPOKEN in said
        heard = {p["turn_id"]: (p["text"], p.get("unheard", "")) for k, p in records if k == "bot"}
        assert {turn["id"]: (turn["heard"], turn["unheard"]) for turn in plain["turns"]} == heard
        for metrics in caller.of("metrics"):
            (turn,) = (t for t in plain["turns"] if t["id"] == metrics["turn_id"])
            assert turn["times"] == {name: at for name, at in metrics["timeline"].items() if at is not None}
        cut = plain["turns"][2]
        assert cut["interrupted"] and [p["outcome"] for p in cut["pauses"]] == ["confirmed"]
        # Memory: the session lives on, so the snapshot has it.
        assert stored.state is not None
        kept = sorted([e["namespace"], e["key"], e["value"]] for e in plain["memory"] if e["current"])
        assert kept == sorted(stored.state["memory"])
        # The flow: every step that was done, and the one that was passed over.
        balance = next(a for a in plain["flow"]["activations"] if a["skill"] == "balance")
        assert balance["status"] == "completed"
        assert balance["blocks"][0]["done"] == ["ask_number", "look_up", "tell", "anything_else"]
        drawn = {s["id"]: s for s in plain["flow"]["graphs"]["balance/main"]["steps"]}
        assert drawn["look_up"]["next"][0] == {"to": "overdrawn", "if": "session.balance.amount < 0"}
        # Records, by pages.
        pages = await told(client, f"{CALL}/events", limit=7, personal="show")
        rest = await told(client, f"{CALL}/events", after=pages["next"], limit=500, personal="show")
        assert pages["records"] + rest["records"] == list(stored.events) and rest["next"] is None

        # Nothing personal without asking: neither the value nor how it was said.
        everything = [shown, *[await told(client, f"{CALL}/{part}") for part in ("events", "prompts", "export")]]
        for document in everything:
            text = json.dumps(document)
            assert NUMBER not in text and "four seven" not in text and REDACTED in text
        first = await told(client, f"{CALL}/events", after=19, limit=3)
        assert f"it is {REDACTED}" in json.dumps(first)
        assert NUMBER in json.dumps(await told(client, f"{CALL}/prompts", personal="show"))
        assert (await client.get(f"{CALL}/export")).headers["content-disposition"].startswith("attachment")
        # The prompts are those of the model calls that were made.
        model = service._engines.model
        prompts = (await told(client, f"{CALL}/prompts", personal="show"))["calls"]
        assert [p["messages"][0]["content"] for p in prompts] == [
            stream.request.messages[0].content
            for stream in model.streams  # type: ignore[attr-defined]
        ]

        # The recording is the call's length, in step with the times, and can be read from any place.
        call = plain["calls"][0]
        path = f"{CALL}/calls/{call['id']}"
        audio = await client.get(f"{path}/recording")
        assert audio.headers["content-type"] == "audio/wav"
        with wave.open(BytesIO(audio.content)) as read:
            assert read.getnchannels() == 2
            assert read.getnframes() / 16000 == pytest.approx(call["seconds"], abs=0.7)
        part = await client.get(f"{path}/recording", headers={"range": "bytes=100-199"})
        assert (part.status_code, part.content) == (206, audio.content[100:200])
        peaks = (await client.get(f"{path}/peaks")).content
        began = next(i for i in range(len(peaks) // 2) if peaks[2 * i + 1]) / 20
        assert began == pytest.approx(plain["turns"][0]["times"]["first_audio"], abs=0.1)

        # Deleted, all of it goes.
        assert (await client.delete(CALL)).status_code == 204
        assert (await client.get(CALL)).status_code == 404
        assert (await client.get(f"{path}/recording")).status_code == 404
        assert not list((tmp_path / "calls").rglob("*.*"))
        assert await service.store.load("user-42") is None
    assert "personal data of a conversation is shown" in caplog.messages
    logged = " ".join(record.getMessage() + str(record.__dict__) for record in caplog.records)
    assert NUMBER not in logged and "four seven" not in logged and "account is" not in logged


async def test_conversations_are_found_by_id_date_and_outcome_page_by_page(tmp_path: Path) -> None:
    service = small_service(tmp_path)
    async with inspected(service) as (address, client):
        for number in range(12):
            await say(client, f"user-{number:02}")
        await say(client, "somebody")
        caller = await WebSocketCaller.dial(address, "?conversation=caller")
        await until(lambda: len(caller.audio) > 6400)

        async def found(**query: Any) -> list[str]:
            ids: list[str] = []
            cursor = None
            for _ in range(20):
                page = await told(client, f"{ROOT}/conversations", **query, **({"cursor": cursor} if cursor else {}))
                ids += [one["id"] for one in page["conversations"]]
                cursor = page["next"]
                if cursor is None:
                    return ids
            raise AssertionError("pages without end")

        everyone = await found(limit=5)
        assert len(everyone) == len(set(everyone)) == 14
        assert sorted(await found(limit=3, q="USER-")) == [f"user-{n:02}" for n in range(12)]
        assert await found(outcome="live") == ["caller"]
        today = (await told(client, f"{ROOT}/conversations", q="somebody"))["conversations"][0]["started_at"][:10]
        assert len(await found(since=today, until=today)) == 14
        assert await found(until="2001-01-01") == await found(since="2999-01-01") == []
        await caller.hang_up()
        await until(lambda: caller.over)
        assert await found(outcome="disconnected") == ["caller"]
        assert "user-03" in await found(limit=2, outcome="")


async def test_viewers_are_told_of_calls_and_records_as_they_happen(tmp_path: Path) -> None:
    service = small_service(tmp_path)
    async with inspected(service) as (address, client):
        events: list[tuple[str, Any]] = []

        async def follow() -> None:
            async with client.stream("GET", f"{ROOT}/live") as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                name = ""
                async for line in response.aiter_lines():
                    if line.startswith("event: "):
                        name = line[7:]
                    elif line.startswith("data: "):
                        events.append((name, json.loads(line[6:])))

        task = asyncio.get_running_loop().create_task(follow())
        await until(lambda: ("calls", []) in events)
        caller = await WebSocketCaller.dial(address, "?conversation=c")
        await until(lambda: ("record", "bot") in [(n, d["kind"]) for n, d in events if n == "record"])
        await until(lambda: any(n == "calls" and d and d[0]["conversation"] == "c" for n, d in events))
        assert all(set(d) == {"conversation", "sequence", "kind", "turn_id"} for n, d in events if n == "record")
        await caller.hang_up()
        await until(lambda: events[-1] == ("calls", []))
        task.cancel()
        await asyncio.wait({task})
        await until(lambda: not service.inspector._feed.viewers)


async def test_a_page_that_follows_does_not_hold_up_the_end_of_the_service(tmp_path: Path) -> None:
    service = small_service(tmp_path)
    loop = asyncio.get_running_loop()
    async with inspected(service) as (_, client):
        stream = client.stream("GET", f"{ROOT}/live")
        response = await stream.__aenter__()
        lines = response.aiter_lines()
        assert await anext(lines) == "event: calls"
        stopping = loop.time()
    assert loop.time() - stopping < 2.9
    await stream.__aexit__(None, None, None)


async def test_more_viewers_than_may_be_are_refused(tmp_path: Path) -> None:
    service = small_service(tmp_path, settings="inspector: {max_viewers: 1}\n")
    async with inspected(service) as (_, client), client.stream("GET", f"{ROOT}/live") as first:
        assert first.status_code == 200
        second = await client.get(f"{ROOT}/live")
        assert (second.status_code, second.json()["code"]) == (503, "too_many_viewers")


async def test_a_page_that_leaves_before_its_stream_begins_leaves_its_place_to_others() -> None:
    feed = LiveFeed(1)

    class Desk:
        def calls(self) -> list[dict[str, Any]]:
            return []

        def watch(self, conversation_id: str | None) -> Viewer:
            return feed.watch(conversation_id)

    app = FastAPI()
    app.include_router(router(Desk(), has_key=True))  # type: ignore[arg-type]

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    statuses = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {"type": "http", "method": "GET", "path": f"{ROOT}/live", "query_string": b"", "headers": []}
    for _ in range(3):
        await app({**scope, "asgi": {"spec_version": "2.3"}}, gone, send)
        assert not feed.viewers
    assert 503 not in statuses


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/conversations/nobody", 404), ("/conversations/nobody/events", 404), ("/conversations/nobody/prompts", 404),
        ("/conversations/nobody/calls/x/recording", 404), ("/conversations/..%2f..%2fetc", 404),
        ("/conversations/-bad", 422), ("/conversations/c/events?limit=0", 422),
        ("/conversations/c/events?limit=501", 422),
        ("/conversations/c/events?after=x", 422), ("/conversations?limit=1000", 422),
        ("/conversations?cursor=nonsense", 422), ("/conversations/c?personal=show", 422),
        ("/conversations/c?personal=maybe", 422), ("/conversations/c/calls/..%2f..%2fagent.yml/recording", 404),
        ("/live?conversation=%20", 422),
    ],
)  # fmt: skip
async def test_what_cannot_be_answered_is_a_clear_error(tmp_path: Path, path: str, status: int) -> None:
    async with inspected(small_service(tmp_path)) as (_, client):
        await say(client, "c")
        answer = await client.get(ROOT + path)
        assert (answer.status_code, set(answer.json())) == (status, {"code", "message"})


async def test_a_conversation_by_text_is_told_without_times(tmp_path: Path) -> None:
    async with inspected(small_service(tmp_path, files=FILES)) as (_, client):
        await say(client, "c", "good day")
        shown = await told(client, f"{ROOT}/conversations/c")
        assert shown["calls"] == [] and shown["turns"][-1]["user"] == {"text": "good day", "kind": "text"}
        assert (await client.get(f"{ROOT}/conversations/c/calls/x/peaks")).content == b""


@pytest.mark.parametrize("settings", ["inspector: {prompts: false}\n"])
async def test_prompts_are_not_kept_where_they_are_switched_off(tmp_path: Path, settings: str) -> None:
    async with inspected(small_service(tmp_path, settings=settings)) as (_, client):
        await say(client, "c")
        assert await told(client, f"{ROOT}/conversations/c/prompts") == {"enabled": False, "calls": []}


# Who may look


@pytest.mark.parametrize(
    ("enabled", "host", "has_key", "on"),
    [
        (None, "127.0.0.1", False, True), (None, "127.0.0.1", True, True), (None, "0.0.0.0", True, False),
        (True, "0.0.0.0", True, True), (True, "0.0.0.0", False, False), (True, "127.0.0.1", False, True),
        (False, "127.0.0.1", False, False), (False, "0.0.0.0", True, False),
    ],
)  # fmt: skip
def test_it_is_on_for_loopback_and_elsewhere_only_when_asked_for(
    enabled: bool | None, host: str, has_key: bool, on: bool
) -> None:
    assert is_on(InspectorOptions(enabled=enabled), host, has_key) is on


async def test_with_a_key_data_needs_it_and_pages_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    service = small_service(tmp_path)
    async with inspected(service) as (_, client):
        token, _grant = service.tokens.issue("c", {}, 60)
        for path in ("", "/conversations", "/conversations/c", "/live", "/conversations/c/calls/x/recording"):
            for shown in (None, "wrong-key-of-many-characters", token):
                headers = {} if shown is None else {"authorization": f"Bearer {shown}"}
                refused = await client.get(ROOT + path, headers=headers)
                assert refused.status_code in (401, 403), (path, shown)
            assert (await client.get(f"{ROOT}{path}?token={KEY}")).status_code == 401
        assert (await client.delete(f"{ROOT}/conversations/c")).status_code == 401
        assert (await client.get("/inspect")).status_code == 200
        assert (await client.get("/inspect/main.js")).status_code == 200
        # The call page shows the way to whoever may look, and to no caller with a token.
        for shown, where in ((KEY, "/inspect"), (token, None)):
            known = (await client.get("/agent", headers={"authorization": f"Bearer {shown}"})).json()
            assert known.get("inspector") == where
        assert (await client.get("/inspect/nothing.js")).status_code == 401
        assert (await client.post("/inspect")).status_code == 405
        assert (await client.get(ROOT, headers={"authorization": f"Bearer {KEY}"})).status_code == 200


async def test_pages_of_others_cannot_reach_it(tmp_path: Path) -> None:
    async with inspected(small_service(tmp_path)) as (_, client):
        for headers in (
            {"origin": "https://evil.example"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"host": "evil.example"},
        ):
            assert (await client.get(ROOT, headers=headers)).status_code == 403, headers
        assert (await client.get(ROOT, headers={"sec-fetch-site": "same-origin"})).status_code == 200


async def test_switched_off_there_is_nothing(tmp_path: Path) -> None:
    async with inspected(small_service(tmp_path, settings="inspector: {enabled: false}\n")) as (_, client):
        for path in ("/inspect", "/inspect/main.js", ROOT, f"{ROOT}/conversations"):
            assert (await client.get(path)).status_code == 404
