"""A real server that refuses tools, over a real HTTP connection: the caller's turn does not notice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from voice_agent.config import LlmOptions, ToolCalls
from voice_agent.llm.factory import build_model
from voice_agent.llm.litellm_model import LiteLlmModel
from voice_agent.llm.protocol import Message, ModelError, ModelRequest, TextDelta, ToolCallDelta, ToolSpec

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"what": {"type": "string"}}})
REQUEST = ModelRequest([Message("user", "Where is it?")], (LOOK,))
REPLY = "<action>look</action><input>the key</input>"


@asynccontextmanager
async def refusing(status: int, message: str) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a model that answers only requests without tools."""
    seen: list[dict[str, Any]] = []

    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        seen.append(body)
        if "tools" in body:
            return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        start = '{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"'
        await response.write(f'data: {start}{REPLY}"}},"finish_reason":null}}]}}\n\n'.encode())
        await response.write(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}/v1", seen
    finally:
        await runner.cleanup()


async def ask(url: str, tool_calls: ToolCalls = "auto", times: int = 1) -> tuple[str, list[str]]:
    model = build_model(LlmOptions(provider="openai", model="m", base_url=url, retries=0, tool_calls=tool_calls))
    text, names = "", []
    try:
        for _ in range(times):
            async for event in model.stream(REQUEST):
                if isinstance(event, TextDelta):
                    text += event.text
                elif isinstance(event, ToolCallDelta):
                    names.append(f"{event.name} {event.arguments}")
    finally:
        await model.aclose()
    return text, names


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "m does not support tools"),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoint supports Tool use"),
    ],
)
async def test_a_refusal_of_tools_turns_to_the_tagged_format_for_good(status: int, message: str) -> None:
    async with refusing(status, message) as (url, seen):
        assert await ask(url, times=2) == ("", ['look {"what": "the key"}'] * 2)
        assert ["tools" in body for body in seen] == [True, False, False]


@pytest.mark.parametrize(
    ("status", "message"), [(400, "the context is too long"), (401, "no key for tools"), (503, "tools")]
)
async def test_another_refusal_is_reported(status: int, message: str) -> None:
    async with refusing(status, message) as (url, seen):
        with pytest.raises(ModelError):
            await ask(url)
        assert len(seen) == 1


async def test_native_only_answers_in_words(caplog: pytest.LogCaptureFixture) -> None:
    async with refusing(400, "m does not support tools") as (url, _):
        assert await ask(url, "native") == (REPLY, [])


async def test_what_litellm_knows_of_a_provider_is_asked_beforehand() -> None:
    for provider, known in (("openai", True), ("petals", False)):
        model = LiteLlmModel(LlmOptions(provider=provider, model="m", base_url="http://127.0.0.1:1/v1"), None)
        assert (await model.takes_tools() is not False) == known
        await model.aclose()
