"""Text by HTTP, on the real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.lines import RecordingService, serving, until
from tests.support.text_conversation import TextConversation
from voice_agent.channels import rest
from voice_agent.dialogue.reply import TurnStatus
from voice_agent.service.readiness import Readiness
from voice_agent.service.texts import TextConversations


class Texts:
    def __init__(self) -> None:
        self.opened: dict[str, TextConversation] = {}
        self.pause_s = 0.01
        self.readiness = Readiness()
        self.desk = TextConversations(self._open, self.readiness, lambda name: name == "on-a-call")

    def _open(self, conversation_id: str, channel: str) -> TextConversation:
        self.opened[conversation_id] = TextConversation(conversation_id, pause_s=self.pause_s)
        return self.opened[conversation_id]


@pytest.fixture
def texts() -> Texts:
    return Texts()


@pytest.fixture
async def client(texts: Texts) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(RecordingService(texts=texts.desk)) as address,
        httpx.AsyncClient(base_url=f"http://{address}") as client,
    ):
        yield client


PATH = "/v1/conversations/c1/messages"


async def test_json_answers_with_the_whole_reply(client: httpx.AsyncClient) -> None:
    answer = await client.post(PATH, json={"text": "hi"})
    assert answer.status_code == 200
    body = answer.json()
    assert body.pop("turn_id")
    assert body == {"conversation": "c1", "status": "completed", "messages": ["Hello there."], "hang_up": None}


async def test_a_client_starts_the_session_with_an_intent(client: httpx.AsyncClient, texts: Texts) -> None:
    assert (await client.post(PATH, json={"intent": "/session_start"})).status_code == 200
    assert texts.opened["c1"].turns[0].text == "/session_start"


async def test_a_hang_up_is_told(client: httpx.AsyncClient) -> None:
    assert (await client.post(PATH, json={"text": "bye"})).json()["hang_up"] == "completed"


async def test_server_sent_events_stream_the_reply_as_it_arises(client: httpx.AsyncClient) -> None:
    async with client.stream("POST", PATH, json={"text": "hi"}, headers={"accept": "text/event-stream"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = "".join([chunk async for chunk in answer.aiter_text()])
    events = [block.split("\n") for block in text.strip().split("\n\n")]
    assert [block[0] for block in events] == ["event: delta", "event: delta", "event: done"]
    assert json.loads(events[0][1].removeprefix("data: ")) == {"message": 0, "text": "Hello "}
    assert json.loads(events[2][1].removeprefix("data: "))["messages"] == ["Hello there."]


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (PATH, b"no json", 400, "bad_body"),
        (PATH, b"[]", 400, "bad_body"),
        (PATH, b"{}", 400, "bad_body"),
        (PATH, b'{"text":"a","intent":"/silence"}', 400, "bad_body"),
        (PATH, b"[" * 10_000, 400, "bad_body"),
        (PATH, b'{"text":""}', 422, "bad_text"),
        (PATH, b'{"text":7}', 422, "bad_text"),
        (PATH, json.dumps({"text": "x" * 2001}).encode(), 422, "bad_text"),
        (PATH, b'{"intent":"/admin"}', 422, "bad_intent"),
        (PATH, b"x" * 20_000, 413, "too_large"),
        ("/v1/conversations/%2e%2e%2fx/messages", b'{"text":"a"}', 404, "http_error"),
        (f"/v1/conversations/{'x' * 129}/messages", b'{"text":"a"}', 422, "bad_conversation"),
        ("/v1/conversations/-rf/messages", b'{"text":"a"}', 422, "bad_conversation"),
        ("/v1/conversations/on-a-call/messages", b'{"text":"a"}', 409, "conversation_busy"),
        ("/v2/anything", b"{}", 404, "http_error"),
    ],
)
async def test_a_bad_request_is_answered_with_code_and_message(
    client: httpx.AsyncClient, path: str, body: bytes, status: int, code: str
) -> None:
    answer = await client.post(path, content=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == {"code", "message"}


async def test_a_body_that_does_not_arrive_is_given_up(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "BODY_TIMEOUT_S", 0.05)

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"text":'
        await asyncio.sleep(0.5)
        yield b'"hi"}'

    assert (await client.post(PATH, content=slowly())).json()["code"] == "too_slow"


async def test_a_service_that_warms_says_so_in_both_forms(client: httpx.AsyncClient, texts: Texts) -> None:
    texts.readiness.__init__("language model")  # type: ignore[misc]
    plain = await client.post(PATH, json={"text": "hi"})
    assert (plain.status_code, plain.json()["code"], plain.headers["retry-after"]) == (503, "not_ready", "1")
    events = await client.post(PATH, json={"text": "hi"}, headers={"accept": "text/event-stream"})
    assert events.text.startswith("event: error")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_client_that_goes_away_cancels_its_turn(client: httpx.AsyncClient, texts: Texts, accept: str) -> None:
    texts.pause_s = 0.2
    with pytest.raises(httpx.ReadTimeout):
        await client.post(PATH, json={"text": "hi"}, headers={"accept": accept}, timeout=0.1)
    await until(lambda: texts.opened["c1"].results)
    assert texts.opened["c1"].results == [TurnStatus.CANCELLED]


async def test_two_messages_at_once_are_answered_in_order(client: httpx.AsyncClient, texts: Texts) -> None:
    first = asyncio.ensure_future(client.post(PATH, json={"text": "one"}))
    await until(lambda: texts.opened.get("c1") and texts.opened["c1"].turns)
    second = asyncio.ensure_future(client.post(PATH, json={"text": "two"}))
    assert [a.status_code for a in await asyncio.gather(first, second)] == [200, 200]
    assert [turn.text for turn in texts.opened["c1"].turns] == ["one", "two"]
